/** Tests of journal segments as memory-mapped files, where the file system supports them, and as files with `write`. */
import { expect, test } from "bun:test";
import { linkSync, readFileSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { newUuid } from "../../src/base/id.ts";
import { openJournalDisk } from "../../src/ledger/journal-disk.ts";
import { PIECE_BYTES, supportsMapping } from "../../src/ledger/mapped-file.ts";
import { temporaryFolder } from "../support/at-end.ts";

const root = temporaryFolder();

/** Appends blocks of 63 KB up to a limit of 9,800 KB, then one byte; returns the file's content. */
async function filledUp(way: "mapped" | "written"): Promise<Uint8Array> {
	const path = join(root, newUuid());
	const code = `
		const { openJournalDisk } = await import(${JSON.stringify(join(import.meta.dir, "../../src/ledger/journal-disk.ts"))});
		const disk = openJournalDisk(${JSON.stringify(path)}, { create: true, maps: ${way === "mapped"} });
		const file = disk.create("00000001.log");
		const block = Buffer.alloc(63 * 1024, 1);
		let whole = 0;
		try { for (;;) { file.append(block, block.length); whole += 1; } } catch (error) { console.log(whole + " " + error.name); }
		file.append(Buffer.from([7]), 1);`;
	// The file size limit falls inside a block, as on a full disk. The reserved space ends before it.
	const limit = 'trap \'\' XFSZ; ulimit -f 9800; exec "$0" -e "$1"';
	const child = Bun.spawn(["bash", "-c", limit, process.execPath, code], { stdout: "pipe", stderr: "inherit" });
	const whole = way === "mapped" ? 154 : 155;
	expect(await new Response(child.stdout).text()).toBe(`${whole} DiskFull\n`);
	expect(await child.exited).toBe(0);
	const bytes = readFileSync(join(path, "00000001.log"));
	const end = whole * 63 * 1024;
	expect([bytes.indexOf(0) < 0 || bytes.indexOf(0) > end, bytes[end - 1], bytes[end]]).toEqual([true, 1, 7]);
	return bytes.subarray(end + 1);
}

test("the journal removes a record that fits into the file only in part", async () => {
	expect((await filledUp("written")).length).toBe(0);
});

test("the journal stores no part of a record whose next piece does not fit", async () => {
	const rest = await filledUp("mapped");
	expect(rest.length).toBe(38 * PIECE_BYTES - 154 * 63 * 1024 - 1);
	expect(rest.every((byte) => byte === 0)).toBe(true);
});

test("the journal continues with `write` when the file cannot be mapped", () => {
	const path = join(root, newUuid());
	const file = openJournalDisk(path, { create: true }).create("00000001.log");
	linkSync(join(path, "00000001.log"), join(path, "kept"));
	unlinkSync(join(path, "00000001.log"));
	const blocks = Array.from({ length: 10 }, (_, number) => Buffer.alloc(63 * 1024, number + 1));
	for (const block of blocks) file.append(block, block.length);
	file.close();
	expect(readFileSync(join(path, "kept")).equals(Buffer.concat(blocks))).toBe(true);
});

test("the journal maps files only on file systems that never move a page", () => {
	const [ext4, xfs, btrfs, nfs] = [0xef53, 0x58465342, 0x9123683e, 0x6969];
	expect([ext4, xfs, btrfs, nfs, btrfs | 0].map(supportsMapping)).toEqual([true, true, false, false, false]);
});
