import { expect, it } from "vitest";
import type { PersonView } from "../../lib/api/api";
import { findPeople, sortPeople } from "./people_rows";

const person = (name: string, gpus: number, busy: number): PersonView => ({
  person: name,
  gpus,
  busy_gpus: busy,
  memory_bytes: gpus * 1000,
  processes: 1,
  nodes: [],
});
const people = [person("bob", 8, 2), person("Alice", 2, 2), person("user10", 0, 0), person("user2", 1, 0)];

it("sorts people by name and by figures", () => {
  expect(sortPeople(people, "person", false).map((one) => one.person)).toEqual(["Alice", "bob", "user2", "user10"]);
  expect(sortPeople(people, "gpus", true).map((one) => one.gpus)).toEqual([8, 2, 1, 0]);
  expect(sortPeople(people, "busy", true)[0].person).toBe("Alice");
});

it("finds people by a part of their name", () => {
  expect(findPeople(people, " ALI ").map((one) => one.person)).toEqual(["Alice"]);
  expect(findPeople(people, "").length).toBe(4);
});
