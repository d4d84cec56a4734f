import { afterAll, mock } from "bun:test";
import { cheapPasswords } from "./password-hashes.ts";
import { stopTestPostgres } from "./postgres.ts";

mock.module("@better-auth/utils/password", () => cheapPasswords);

// Registered outside of test files, so that it runs after the last file, or after each file if they share processes.
afterAll(stopTestPostgres, 60_000);
