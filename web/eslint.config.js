import js from "@eslint/js";
import svelte from "eslint-plugin-svelte";
import globals from "globals";
import ts from "typescript-eslint";
import svelteConfig from "./svelte.config.js";

export default ts.config(
  { ignores: ["node_modules/", "src/lib/api/types.ts"] },
  js.configs.recommended,
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  {
    languageOptions: { globals: { ...globals.browser, ...globals.node } },
    rules: {
      // `== null` is null and undefined: the hub leaves out what is unknown.
      eqeqeq: ["error", "always", { null: "ignore" }],
      // TypeScript knows what exists.
      "no-undef": "off",
      // What a frame or a list holds at a place is known by its length; the check would be noise.
      "@typescript-eslint/no-non-null-assertion": "off",
      // Text from nodes is never HTML.
      "svelte/no-at-html-tags": "error",
      // A Map or Set that is made and read in one go, or kept out of the picture on purpose, need not be watched.
      "svelte/prefer-svelte-reactivity": "off",
      // Links are hashes made by href(); there is no router to resolve them.
      "svelte/no-navigation-without-resolve": "off",
    },
  },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: { parserOptions: { parser: ts.parser, extraFileExtensions: [".svelte"], svelteConfig } },
  },
);
