import { afterAll, setDefaultTimeout } from "bun:test";
import { TEST_MS_MAX } from "./at-end.ts";
import { hashPasswordsCheaply } from "./cheap-passwords.ts";
import { stopTestPostgres } from "./postgres.ts";

hashPasswordsCheaply();
setDefaultTimeout(TEST_MS_MAX);

// Outside of all files, so that it runs once after the last one, or after each in processes that share them.
afterAll(stopTestPostgres, 60_000);
