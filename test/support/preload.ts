import { afterAll } from "bun:test";
import { stopTestPostgres } from "./postgres.ts";

// Outside of all files, so that it runs once, after the last one.
afterAll(() => stopTestPostgres(), 60_000);
