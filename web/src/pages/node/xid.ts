/** NVIDIA's error numbers (XID) in words, and what helps. */

/** They tell of a mistake in a program, or of something the card has dealt with; the hub sees them the same way. */
const PROGRAM = new Set([8, 13, 31, 32, 43, 45, 63, 68, 69, 94]);

const MEANINGS: Record<number, string> = {
  8: "a program did not let go of the GPU in time",
  13: "a program made the GPU compute something invalid; look at the program first",
  31: "a program used a memory address that is not its own; look at the program first",
  32: "commands reached the GPU damaged; a program, or the PCIe link",
  38: "the firmware of the driver failed; start the node again",
  43: "a program failed and the GPU stopped it; look at the program",
  45: "programs were ended because of an earlier error; look at the one before",
  48: "a memory error that could not be corrected; reset the GPU, exchange it when it comes back",
  54: "the card lacks its power cable",
  56: "an error of the display engine",
  57: "the video memory could not be set up",
  61: "the card's own controller stopped; start the node again",
  62: "the card's own controller stopped; start the node again",
  63: "faulty memory was marked, to be left out after the next reset",
  64: "faulty memory could not be marked; reset the GPU, exchange it when it comes back",
  68: "the video decoder failed, mostly because of a program",
  69: "a program gave the GPU something invalid; look at the program first",
  74: "an NVLink connection failed; look at its other end too",
  79: "the GPU is off the bus: power, seating or the card; start the node again",
  92: "very many corrected memory errors; watch it",
  94: "a memory error hit one program only, which was ended; the others go on",
  95: "a memory error may have hit every program; end them and reset the GPU",
  109: "switching between programs took too long; reset the GPU when it stays so",
  110: "a security fault of the GPU; start the node again",
  119: "the card's system processor does not answer; start the node again",
  120: "the card's system processor failed; start the node again",
  121: "an error on the link between CPU and GPU was corrected",
  122: "the card's own flash memory could not be read",
  123: "the card's power controller does not answer; start the node again",
  137: "a program used an NVLink address that is not its own",
  140: "a memory error that could not be dealt with; reset the GPU",
  143: "the GPU could not be set up; start the node again",
  154: "the driver asks for the GPU, or the node, to be reset",
};

export function xidMeaning(xid: number): string {
  if (xid >= 144 && xid <= 150) return "an NVLink connection failed; look at its other end too";
  return MEANINGS[xid] ?? "NVIDIA's list of XID errors has more";
}

/** Whether it is the card that is in trouble, rather than a program on it. */
export function isHardware(xid: number): boolean {
  return !PROGRAM.has(xid);
}
