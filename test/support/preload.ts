import { afterAll } from "bun:test";
import { hashPasswordsCheaply } from "./cheap-passwords.ts";
import { createFileTimesWriter } from "./cpu-times.ts";
import { stopTestPostgres } from "./postgres.ts";

hashPasswordsCheaply();

const { TEST_CPU_LOG } = Bun.env;
const writeTimes = TEST_CPU_LOG === undefined ? undefined : createFileTimesWriter(TEST_CPU_LOG);

// Outside of all files, so that it runs once, after the last one; after each in processes that share them.
afterAll(async () => {
	await stopTestPostgres();
	writeTimes?.(Bun.main);
}, 60_000);
