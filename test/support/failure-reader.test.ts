import { expect, test } from "bun:test";
import { createFailureReader } from "./failure-reader.ts";

/** As Bun 1.4.5 writes it for two processes. */
const OUTPUT = `bun test v1.4.5 2x PARALLEL

test/a.test.ts:
what a good test wrote
(pass) a good one [1.00ms]
what a bad test wrote
\x1b[31merror\x1b[0m: expect(received).toBe(expected)
\x1b[31m(fail)\x1b[0m a bad one [2.00ms]
{"msg":"what another good test wrote"}
(pass) another good one

test/b.test.ts:

# Unhandled error between tests
-------------------------------
error: set-up failed
-------------------------------


test/c.test.ts:
✗ test/c.test.ts (worker crashed: SIGKILL)

test/d.test.ts:
(skip) nothing
(pass) the last

2 tests failed:
(fail) a bad one [2.00ms]

 3 pass
 3 fail
Ran 6 tests across 4 files. [1.00s]`;

const FAILURES = [
	"test/a.test.ts:\nwhat a bad test wrote\nerror: expect(received).toBe(expected)\n(fail) a bad one [2.00ms]",
	`test/b.test.ts:
# Unhandled error between tests
-------------------------------
error: set-up failed
-------------------------------`,
	"test/c.test.ts:\n✗ test/c.test.ts (worker crashed: SIGKILL)",
];

test.each([1, 7, 100_000])("each failure is found whole and once, by its file, in pieces of %i", (size) => {
	const reader = createFailureReader();
	for (let at = 0; at < OUTPUT.length; at += size) reader.read(OUTPUT.slice(at, at + size));
	reader.end();
	expect(reader.found()).toEqual(FAILURES);
});

test("an error after the last test is found as well, and so is that of a further run", () => {
	const reader = createFailureReader();
	for (let run = 0; run < 2; run += 1) {
		reader.read("test/a.test.ts:\n(pass) one\n\n# Unhandled error between tests\nerror: late");
		reader.end();
	}
	expect(reader.found()).toEqual(Array(2).fill("test/a.test.ts:\n# Unhandled error between tests\nerror: late"));
});
