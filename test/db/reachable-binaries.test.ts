import { beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLog } from "../../src/base/log.ts";
import { type PostgresBinaries, reachableBinaries } from "../../src/db/postgres-binaries.ts";
import { findServerOwner } from "../../src/db/postmaster.ts";
import { temporaryFolder } from "../support/at-end.ts";

const IS_ROOT = process.getuid?.() === 0;
const NOBODY = 65_534;

/** Runs only as root: root runs the server as another user, who must be able to reach the programs. */
describe.if(IS_ROOT)("Postgres programs in a folder closed to the server's user", () => {
	let base: string;
	let closed: PostgresBinaries;
	let lines: string[];
	const log = createLog({ level: "info", write: (line) => lines.push(line) });
	const owner = findServerOwner("/nowhere");
	const find = (...homes: string[]) => reachableBinaries({ log }, closed, owner, homes);

	/** Replaces PostgreSQL's programs by one that always succeeds, with the files that it needs. */
	beforeEach(() => {
		lines = [];
		base = temporaryFolder();
		chmodSync(base, 0o755);
		closed = { folder: join(base, "closed", "native"), version: "18.0.0-test" };
		for (const folder of ["bin", "lib", "share"]) mkdirSync(join(closed.folder, folder), { recursive: true });
		writeFileSync(join(closed.folder, "bin", "postgres"), "#!/bin/sh\n", { mode: 0o700 });
		writeFileSync(join(closed.folder, "lib", "libpq.so.5"), "library", { mode: 0o600 });
		symlinkSync("libpq.so.5", join(closed.folder, "lib", "libpq.so"));
		writeFileSync(join(closed.folder, "share", "postgres.bki"), "catalogue");
		chmodSync(join(base, "closed"), 0o700);
	});

	test("are copied once to a folder that only root can change", async () => {
		const home = join(base, "home");
		const [first, second] = await Promise.all([find(home), find(home)]);
		expect(first).toEqual(second);
		expect(lines).toHaveLength(1);
		expect(readdirSync(home).sort()).toEqual(["lock", `postgresql-${closed.version}`]);
		expect(statSync(first.folder)).toMatchObject({ uid: 0, mode: 0o040755 });
		expect(statSync(join(first.folder, "bin", "postgres"))).toMatchObject({ uid: 0, mode: 0o100755 });
		expect(statSync(join(first.folder, "lib", "libpq.so"))).toMatchObject({ uid: 0, mode: 0o100644 });
		const { ino } = statSync(first.folder);
		expect(statSync((await find(home)).folder).ino).toBe(ino);
	});

	test("are not used from a folder that is a link or belongs to another user", async () => {
		const theirs = join(base, "theirs");
		mkdirSync(theirs);
		chownSync(theirs, NOBODY, NOBODY);
		const link = join(base, "link");
		symlinkSync(theirs, link);
		const own = join(base, "own");
		expect((await find(theirs, link, own)).folder).toStartWith(own);
		expect(readdirSync(theirs)).toEqual([]);
	});

	test("make the start fail with a remedy if they can be copied nowhere", async () => {
		const error = await find(join(base, "closed", "home")).catch((fault) => fault);
		expect(error.code).toBe("service_unavailable");
		expect(error.message).toContain("DATABASE_URL");
		expect(error.private).toMatch(/permission/i);
	});
});
