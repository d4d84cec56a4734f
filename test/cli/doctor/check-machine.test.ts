import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkAddress, checkDisk } from "../../../src/cli/doctor/check-machine.ts";
import { quietPort } from "../../chaos/serve-process.ts";
import { temporaryFolder, untilEnd } from "../../support/at-end.ts";
import { expectFinding, expectWell } from "./find.ts";

const folder = temporaryFolder();
const config = (dataDir = folder) => ({ dataDir, journal: "process", production: false }) as const;

describe("the doctor's check of the disk", () => {
	const MIB = 1024 ** 2;
	const room = { type: 61267, bsize: 4096, bavail: MIB };

	test("accepts a folder that exists or can be created, and leaves it unchanged", () => {
		const before = readdirSync(folder);
		for (const path of [folder, join(folder, "not", "yet")])
			expectWell(checkDisk(config(path), { statfs: () => room, timeSync: timed(1) }));
		expect(readdirSync(folder)).toEqual(before);
	});

	test("fails if DATA_DIR is a file or cannot be written", () => {
		writeFileSync(join(folder, "file"), "");
		expectFinding(checkDisk(config(join(folder, "file"))), "broken", /cannot be written/);
		const timeSync = () => {
			throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
		};
		expectFinding(checkDisk(config(), { timeSync }), "broken", /cannot be written: ENOSPC/);
	});

	test("warns of a nearly full disk or network file system, fails on a full disk", () => {
		const check = (system: Partial<typeof room>) => checkDisk(config(), { statfs: () => ({ ...room, ...system }) });
		expectFinding(check({ bavail: (2047 * MIB) / 4096 }), "warning", /^2\.0 GiB are free/);
		expectFinding(check({ bavail: (63 * MIB) / 4096 }), "broken", /^0\.1 GiB are free/);
		expectFinding(check({ type: 26985 }), "warning", /network file system/);
		// The magic number of CIFS, as a signed integer.
		expectFinding(check({ type: 4283649346 | 0 }), "warning", /network file system/);
	});

	test("warns of a slow fsync if JOURNAL makes each answer wait for an fsync", () => {
		const slow = (journal: "host" | "process") => checkDisk({ ...config(), journal }, { timeSync: timed(20.1) });
		expectFinding(slow("process"), "ok", /fsync takes 20\.1 ms$/);
		expectFinding(slow("host"), "warning", /fsync takes 20\.1 ms$/);
	});

	test("fails if files cannot be locked", () => {
		expectFinding(checkDisk(config(), { canLock: () => false }), "broken", /^files in .* cannot be locked$/);
	});

	test.if(existsSync("/dev/shm"))("fails in production on a disk in memory, unless JOURNAL is `remote`", () => {
		const check = (more: object) => checkDisk({ ...config("/dev/shm/tollgate"), ...more });
		expectFinding(check({ production: true }), "broken", /in memory/);
		expectFinding(check({ production: true, journal: "remote" }), "warning", /in memory/);
		expectFinding(check({}), "warning", /in memory/);
	});

	function timed(ms: number) {
		return (path: string) => {
			writeFileSync(path, "");
			return ms;
		};
	}
});

describe("the doctor's check of the address", () => {
	const listen = (port: number) =>
		Bun.listen({ hostname: "127.0.0.1", port, socket: { open: (socket) => void socket.end(), data() {} } });

	test("accepts a free port or Tollgate's own port, fails on another program's port", async () => {
		const other = listen(quietPort());
		const address = { host: "127.0.0.1", port: other.port };
		expectFinding(await checkAddress(address), "broken", /port is in use/);
		other.stop(true);
		expectFinding(await checkAddress(address), "ok", /is free$/);
		untilEnd(
			Bun.serve({
				hostname: address.host,
				port: address.port,
				fetch: (request) => new Response(new URL(request.url).pathname === "/livez" ? "ok\n" : "status"),
			}),
		);
		expectFinding(await checkAddress(address), "ok", /already served by Tollgate/);
	});

	test("fails on a HOST that is not an address of this machine", async () => {
		expectFinding(await checkAddress({ host: "192.0.2.1", port: 8080 }), "broken", /HOST/);
		expectFinding(await checkAddress({ host: "nowhere.invalid", port: 8080 }), "broken", /HOST must be an address/);
	});

	test("warns of a low limit of open files", async () => {
		const of = (files: number) =>
			checkAddress(
				{ host: "127.0.0.1", port: 0 },
				{ limits: () => `Max open files            ${files}   1048576   files\n` },
			);
		expectFinding(await of(1024), "warning", /^1024 open files/);
		expectWell(await of(4096));
	});
});
