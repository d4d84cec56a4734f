import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../support/code-of.ts";
import { bytesOf, MB, sample, streamOf, textOf, withFiles } from "./file-store.ts";

const at = await withFiles();
const { files, folder, store } = at;
const owner = { accountId: "acc_files", keyId: "key_files" };
const newFile = { purpose: "batch", filename: "in.jsonl" } as const;
const output = { purpose: "batch_output", filename: "out.jsonl" } as const;
const DAY_MS = 24 * 3600_000;

const failure = (work: Promise<unknown>) => work.then(() => undefined).catch((error) => error);
const blobsOf = (fileId: string) => readdirSync(join(folder, fileId)).map((name) => join(folder, fileId, name));

describe("a file of an account", () => {
	test("is read as it was written, in any byte range", async () => {
		const bytes = sample(5 * MB + 20);
		const record = await files.create(owner, newFile, streamOf(bytes));
		expect(record).toMatchObject({ ...owner, ...newFile, bytes: bytes.length });
		expect(await files.find(owner.accountId, record.id)).toEqual(record);
		for (const [start, end] of [
			[0, bytes.length],
			[0, 1],
			[65_535, 65_537],
			[2 * MB - 1, 2 * MB + 1],
			[4 * MB + 5, bytes.length],
			[7, 7],
		] as const) {
			const read = await bytesOf(files.read(record, { start, end }));
			expect(Buffer.compare(read, bytes.subarray(start, end))).toBe(0);
		}
	});

	test("is stored encrypted", async () => {
		const record = await files.create(owner, newFile, streamOf(new TextEncoder().encode("a prompt of somebody's")));
		const stored = blobsOf(record.id).map((path) => readFileSync(path));
		expect(stored.length).toBe(1);
		expect(Buffer.concat(stored).includes("prompt")).toBe(false);
	});

	test("cannot be read if its stored bytes were changed, moved or cut off", async () => {
		const record = await files.create(owner, newFile, streamOf(sample(192 * 1024)));
		const [path] = blobsOf(record.id);
		if (path === undefined) throw new Error("it has a part");
		const whole = readFileSync(path);
		const chunk = whole.length / 3;
		const changed = Buffer.from(whole);
		changed[70_000] = (changed[70_000] ?? 0) ^ 1;
		const exchanged = Buffer.concat([
			whole.subarray(chunk, 2 * chunk),
			whole.subarray(0, chunk),
			whole.subarray(2 * chunk),
		]);
		for (const bytes of [changed, exchanged, whole.subarray(0, 2 * chunk), Buffer.alloc(0)]) {
			writeFileSync(path, bytes);
			expect(await failure(bytesOf(files.read(record)))).toBeInstanceOf(Error);
		}
		writeFileSync(path, whole);
		expect((await bytesOf(files.read(record))).length).toBe(record.bytes);
		const other = await files.create(owner, newFile, streamOf(sample(192 * 1024)));
		writeFileSync(path, readFileSync(blobsOf(other.id)[0] ?? ""));
		expect(await failure(bytesOf(files.read(record)))).toBeInstanceOf(Error);
	});

	test("leaves nothing in the store if its upload breaks off", async () => {
		const before = await at.space(owner.accountId);
		const brokenOff = (async function* () {
			yield sample(3 * MB);
			throw new Error("the client left");
		})();
		expect(await failure(files.create(owner, newFile, brokenOff))).toMatchObject({ message: "the client left" });
		const late = files.create(owner, newFile, streamOf(sample(3 * MB)), async () => {
			throw new Error("the form is wrong");
		});
		expect(await failure(late)).toMatchObject({ message: "the form is wrong" });
		expect(await at.space(owner.accountId)).toEqual(before);
		expect(await at.db.sql`select 1 from stored_file where state <> 'ready'`).toHaveLength(0);
	});

	test("ends running downloads when it is deleted", async () => {
		const record = await files.create(owner, newFile, streamOf(sample(6 * MB)));
		const reader = files.read(record).getReader();
		await reader.read();
		expect(await files.remove(owner.accountId, record.id)).toBe(true);
		const rest = async () => {
			while (!(await reader.read()).done);
		};
		expect(await failure(rest())).toBeInstanceOf(Error);
		expect(await files.remove(owner.accountId, record.id)).toBe(false);
	});
});

describe("a file that is written part by part", () => {
	test("continues after the last recorded part and loses bytes that were not yet sealed", async () => {
		const writer = await files.writer(owner, output);
		writer.write("one\n");
		expect(await writer.seal()).toBe(1);
		writer.write("lost\n");
		const resumed = await files.resume(writer.fileId);
		expect(resumed?.parts()).toBe(1);
		resumed?.write("two\n");
		expect(await resumed?.seal()).toBe(2);
		expect(await files.find(owner.accountId, writer.fileId)).toBeUndefined();
		const record = await resumed?.finish();
		if (record === undefined) throw new Error("it is finished");
		expect(await textOf(files.read(record))).toBe("one\ntwo\n");
		expect(await files.resume(writer.fileId)).toBeUndefined();
	});

	test("has one writer, so the slower of two writers seals nothing", async () => {
		const writer = await files.writer(owner, output);
		const other = await files.resume(writer.fileId);
		writer.write("mine\n");
		other?.write("theirs\n");
		await writer.seal();
		expect(await failure(other?.seal() ?? Promise.resolve())).toMatchObject({ code: "conflict" });
		expect(await textOf(files.read(await writer.finish()))).toBe("mine\n");
	});

	test("is complete although its store and Postgres fail while it is written", async () => {
		const writer = await files.writer(owner, output);
		const put = store.put;
		writer.write("one\n");
		store.put = () => Promise.reject(new Error("the store is away"));
		expect(await failure(writer.seal())).toMatchObject({ message: "the store is away" });
		store.put = put;
		writer.write("two\n");
		expect(await writer.seal()).toBe(2);

		writer.write("three\n");
		await at.db.sql`alter table stored_file_part rename to hidden`;
		expect(await failure(writer.seal())).toBeInstanceOf(Error);
		await at.db.sql`alter table hidden rename to stored_file_part`;
		const [blob] = blobsOf(writer.fileId).filter((path) => path.includes("/2-"));
		const name = blob?.split("/").at(-1) ?? "";
		await at.db.sql`select file_seal(${writer.fileId}, 2, 6, ${name}, 1, 1)`;
		expect(await writer.seal()).toBe(3);
		expect(await textOf(files.read(await writer.finish()))).toBe("one\ntwo\nthree\n");
	});

	test("is complete although it has thousands of small parts", async () => {
		const writer = await files.writer(owner, output);
		let expected = "";
		for (let line = 0; line < 600; line += 1) {
			expected += `line ${line}\n`;
			writer.write(`line ${line}\n`);
			await writer.seal();
		}
		const record = await writer.finish();
		expect(await textOf(files.read(record))).toBe(expected);
		expect(await textOf(files.read(record, { start: 4_000, end: 4_020 }))).toBe(expected.slice(4_000, 4_020));
	});
});

describe("the space for files", () => {
	test("is limited per account under concurrent uploads", async () => {
		const crowd = { accountId: "acc_crowd", keyId: "key_crowd" };
		at.limits.fileAccountBytesMax = 5 * MB;
		const uploads = Array.from({ length: 12 }, () => files.create(crowd, newFile, streamOf(sample(MB))));
		const outcomes = await Promise.allSettled(uploads);
		at.limits.fileAccountBytesMax = 64 * MB;
		expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
		for (const outcome of outcomes)
			if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "conflict" });
		expect(await at.space(crowd.accountId)).toEqual({ files: 5, bytes: 5 * MB });
		const [all] = await at.db.sql`
			select sum(files)::int as files, sum(bytes)::int as bytes from file_space where account_id <> ''`;
		expect(await at.space("")).toEqual({ files: all?.files, bytes: all?.bytes });
	});

	test("is limited for all accounts together; outputs of batches count but always fit", async () => {
		const full = { accountId: "acc_full", keyId: "key_full" };
		at.limits.filesBytesMax = 0;
		expect(await failure(files.create(full, newFile, streamOf(sample(4))))).toMatchObject({ code: "overloaded" });
		at.limits.fileAccountBytesMax = 0;
		expect(await failure(files.create(full, newFile, streamOf(sample(4))))).toMatchObject({ code: "conflict" });
		const writer = await files.writer(full, output);
		writer.write("paid for");
		await writer.finish();
		Object.assign(at.limits, { filesBytesMax: 256 * MB, fileAccountBytesMax: 64 * MB });
		expect(await at.space(full.accountId)).toEqual({ files: 1, bytes: 8 });
	});

	test("is left for the next account after many accounts fill it", async () => {
		at.limits.filesBytesMax = (await at.space("")).bytes + 16 * MB;
		const filled = async (name: string) => {
			const owner = { accountId: `acc_${name}`, keyId: "key" };
			let count = 0;
			while ((await codeOf(files.create(owner, newFile, streamOf(sample(MB / 4))))) === "none") count += 1;
			return count;
		};
		const counts: number[] = [];
		for (let nth = 0; nth < 8; nth += 1) counts.push(await filled(`filling_${nth}`));
		at.limits.filesBytesMax = 256 * MB;
		// Each account's 64 files take a third of the free space, so later accounts get less.
		expect(counts).toEqual(counts.toSorted((a, b) => b - a));
		expect([counts[0], counts[1]]).toEqual([21, 14]);
		expect(counts.at(-1)).toBeGreaterThan(0);
	});

	test("is limited to 10,000 files per account", async () => {
		const many = { accountId: "acc_full_list", keyId: "key_full_list" };
		await files.create(many, newFile, streamOf(sample(4)));
		await at.db.sql`update file_space set files = 9999 where account_id = ${many.accountId}`;
		await files.create(many, newFile, streamOf(sample(4)));
		expect(await failure(files.create(many, newFile, streamOf(sample(4))))).toMatchObject({ code: "conflict" });
	});
});

describe("the expiry of a file", () => {
	test("hides the file, then deletes its bytes", async () => {
		const short = { accountId: "acc_short", keyId: "key_short" };
		const kept = await files.create(short, newFile, streamOf(sample(MB)));
		const brief = await files.create(short, newFile, streamOf(sample(MB)), async () => ({ lifetimeMs: DAY_MS }));
		expect([kept, brief].map((file) => file.expiresAtMs - file.createdAtMs)).toEqual([30 * DAY_MS, DAY_MS]);
		const query = { purpose: null, after: null, newestFirst: true, limit: 10 };
		const found = async () => [
			(await files.find(short.accountId, brief.id))?.id,
			(await files.list(short.accountId, query)).length,
		];
		at.nowMs += DAY_MS + 1_000;
		expect(await found()).toEqual([brief.id, 2]);
		// Files are deleted only when both clocks agree, because a deletion cannot be undone.
		while ((await files.sweep()) > 0);
		expect(existsSync(join(folder, brief.id))).toBe(true);
		await at.passInDatabase(short.accountId, DAY_MS);
		expect(await found()).toEqual([undefined, 1]);
		at.nowMs -= DAY_MS + 2_000;
		expect(await found()).toEqual([brief.id, 2]);
		while ((await files.sweep()) > 0);
		expect(existsSync(join(folder, brief.id))).toBe(true);
		at.nowMs += DAY_MS + 2_000;
		while ((await files.sweep()) > 0);
		expect(existsSync(join(folder, brief.id))).toBe(false);
		expect(await at.space(short.accountId)).toEqual({ files: 1, bytes: MB });
		expect((await bytesOf(files.read(kept))).length).toBe(MB);
		at.nowMs -= DAY_MS + 1_000;
	});

	test("removes an aborted upload after six hours, but not a batch's output", async () => {
		const killed = { accountId: "acc_killed", keyId: "key_killed" };
		const started = Promise.withResolvers<void>();
		const hangs = (async function* () {
			yield sample(3 * MB);
			started.resolve();
			await new Promise<never>(() => {});
		})();
		void files.create(killed, newFile, hangs);
		await started.promise;
		const writer = await files.writer(killed, output);
		writer.write("one");
		await writer.seal();
		at.nowMs += 6 * 3600_000;
		await at.passInDatabase(killed.accountId, 6 * 3600_000);
		while ((await files.sweep()) > 0);
		expect(await at.space(killed.accountId)).toEqual({ files: 1, bytes: 3 });
		expect((await files.resume(writer.fileId))?.parts()).toBe(1);
	});

	test("is repeated if the store was unavailable", async () => {
		const { removeFile } = store;
		const record = await files.create(owner, newFile, streamOf(sample(4)));
		store.removeFile = () => Promise.reject(new Error("the store is away"));
		expect(await files.remove(owner.accountId, record.id)).toBe(true);
		expect(await files.find(owner.accountId, record.id)).toBeUndefined();
		expect(await files.sweep()).toBe(0);
		store.removeFile = removeFile;
		expect(existsSync(join(folder, record.id))).toBe(true);
		while ((await files.sweep()) > 0);
		expect(existsSync(join(folder, record.id))).toBe(false);
	});

	test("is not held up by files that cannot be deleted", async () => {
		const { removeFile } = store;
		const many = { accountId: "acc_many", keyId: "key_many" };
		const stuck = await files.create(many, newFile, streamOf(sample(4)));
		// Inserts as many older files as one check handles.
		await at.db.sql`
			insert into stored_file select f.* from generate_series(1, 199) n, lateral (
				select (jsonb_populate_record(s, jsonb_build_object('id', s.id || n))).* from stored_file s where s.id = ${stuck.id}) f`;
		await at.passInDatabase(many.accountId, 31 * DAY_MS);
		const behind = { accountId: "acc_behind", keyId: "key_behind" };
		const last = await files.create(behind, newFile, streamOf(sample(4)));
		await at.passInDatabase(behind.accountId, 30 * DAY_MS + 60_000);
		store.removeFile = (id) => (id.startsWith(stuck.id) ? Promise.reject(new Error("it is held")) : removeFile(id));
		for (let look = 0; look < 2; look += 1) await files.sweep();
		expect(existsSync(join(folder, last.id))).toBe(false);
		store.removeFile = removeFile;
		while ((await files.sweep()) > 0);
		expect(existsSync(join(folder, stuck.id))).toBe(false);
	});
});
