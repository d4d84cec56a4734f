import { afterAll } from "bun:test";
import { hashPasswordsCheaply } from "./cheap-passwords.ts";
import { stopTestPostgres } from "./postgres.ts";

hashPasswordsCheaply();

// Outside of all files, so that it runs once after the last one, or after each in processes that share them.
afterAll(stopTestPostgres, 60_000);
