import type { Clock } from "../../src/base/clock.ts";
import { newId } from "../../src/base/id.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { type BatchBooks, createBatchBooks } from "../../src/batch/batch-books.ts";
import type { BatchRecord } from "../../src/batch/batch-record.ts";
import type { LineSender } from "../../src/batch/line-work.ts";
import { runBatch } from "../../src/batch/run-batch.ts";
import { DatabaseTimeout } from "../../src/db/outage.ts";
import { createDiskBlobs } from "../../src/files/blob-store.ts";
import type { FileOwner } from "../../src/files/file-record.ts";
import { createFiles, type Files } from "../../src/files/files.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { temporaryFolder } from "../support/at-end.ts";
import type { TestDatabase } from "../support/database.ts";
import { modelOver, snapshotOf } from "../support/upstream-catalog.ts";
import { chatLine } from "./batch-service.ts";

const MB = 1024 * 1024;
/** Time runs a hundred times faster, so pauses take a hundredth of their length. */
const SPEED = 100;
export const COST = 10;

interface LifeOptions {
	readonly diesAt?: number;
	/** True if the call at which the process dies still takes effect. */
	readonly after?: boolean;
	/** Calls to the books fail from call number `from` to before call number `until`. */
	readonly away?: readonly [from: number, until: number];
	readonly log?: Log;
	readonly refused?: Set<string>;
}

export async function keyOwner(db: TestDatabase): Promise<FileOwner> {
	const { id: accountId } = await createAccount(db.statements, { email: "crash@example.com", vouched: true });
	const maker = { statements: db.statements, digest: createDigest("x".repeat(32)), serviceName: "service" };
	return { accountId, keyId: (await createKey(maker, accountId, { name: "crash" })).id };
}

/** One model server and one database for several batch processes, one after the other. */
export function createCrashWorld(db: TestDatabase, owner: FileOwner, random: () => number) {
	const folder = temporaryFolder();
	/** Number of completions of each line by the model server, by the line's name. */
	const executed = new Map<string, number>();
	/** Names of the lines that a process has started to send. */
	const given = new Set<string>();
	/** UUIDs of the charged requests. */
	const charged = new Set<string>();
	const fileDeps = {
		statements: db.statements,
		clock: { ...fastClock(() => false), wallMs: () => Date.now() },
		log: silentLog,
		room: { check() {} },
		limits: () => ({ fileBytesMax: 16 * MB, fileAccountBytesMax: 64 * MB, filesBytesMax: 256 * MB }),
	};
	const filesOf = () =>
		createFiles({ ...fileDeps, stores: { main: createDiskBlobs({ folder }), others: [] } }, { secret: "x".repeat(32) });
	const files = filesOf();
	const books = createBatchBooks(db);

	/** One process that runs batches. It can die before or after any of its calls to the books or the files. */
	function live({
		diesAt = Number.POSITIVE_INFINITY,
		after = false,
		away,
		log = silentLog,
		refused = new Set(),
	}: LifeOptions = {}) {
		let calls = 0;
		let dead = false;
		const died = Promise.withResolvers<void>();
		const forever = new Promise<never>(() => {});
		/** Counts the process's external calls, and lets the process die at the chosen call. */
		async function call<T>(work: () => Promise<T>): Promise<T> {
			if (dead) return forever;
			calls += 1;
			if (away !== undefined && calls >= away[0] && calls < away[1])
				throw new DatabaseTimeout("scripted: the database is away");
			const dies = calls === diesAt;
			if (dies && !after) return die();
			const result = await work();
			if (dies) return die();
			return dead ? forever : result;
		}
		function die(): Promise<never> {
			dead = true;
			died.resolve();
			return forever;
		}
		const wrapped = <T extends object>(target: T): T =>
			new Proxy(target, {
				get(of, name) {
					const value = Reflect.get(of, name) as unknown;
					if (typeof value !== "function") return value;
					return (...given: unknown[]) => {
						const isSync = ["parts", "bytes", "buffered", "write", "read"].includes(String(name));
						if (isSync) return value.apply(of, given);
						return call(async () => {
							const result = await value.apply(of, given);
							return isWriter(result) ? wrapped(result) : result;
						});
					};
				},
			});
		const carrier: LineSender = {
			async answer({ body, requestUuid, signal }) {
				if (dead) return forever;
				const { messages } = JSON.parse(body);
				const name = messages[0].content as string;
				given.add(name);
				await Bun.sleep(random() * 3);
				if (dead) return forever;
				if (random() < 0.15) return Response.json({ error: { code: "overloaded", message: "busy" } }, { status: 503 });
				if (signal.aborted)
					return Response.json({ error: { code: "request_timeout", message: "given up" } }, { status: 408 });
				executed.set(name, (executed.get(name) ?? 0) + 1);
				await Bun.sleep(random() * 3);
				if (dead) return forever;
				charged.add(requestUuid);
				used.set(requestUuid, COST);
				return Response.json({ answer: name });
			},
			usageOf(uuid) {
				const cost = used.get(uuid);
				used.delete(uuid);
				if (cost === undefined) return undefined;
				return {
					promptTokens: 2,
					cachedTokens: 0,
					completionTokens: 1,
					reasoningTokens: 0,
					chargedNanoUsd: nanoUsd(cost),
				};
			},
			room: async () => (dead ? forever : 4),
		};
		const used = new Map<string, number>();
		const deps = {
			books: wrapped<BatchBooks>(books),
			files: wrapped<Files>(filesOf()),
			carrier,
			clock: fastClock(() => dead),
			log,
			refused,
			snapshot: async () => snapshotOf(modelOver([], { id: "test-model", batch: { rateCard: null } })),
			graceMs: 100,
			othersWait: async () => false,
		};
		return {
			run: (batchId: string, signal = new AbortController().signal) =>
				Promise.race([runBatch(deps, batchId, signal), died.promise]),
			isOver: () => dead,
		};
	}

	async function create(
		lines: readonly string[],
		{ windowMs = 24 * 3600_000, outputExpiresS = null }: { windowMs?: number; outputExpiresS?: number | null } = {},
	): Promise<string> {
		const bytes = new Blob([lines.map((line) => `${line}\n`).join("")]).stream();
		const input = await files.create(owner, { purpose: "batch", filename: "in" }, bytes);
		const id = `batch_${crypto.randomUUID()}`;
		const batch = {
			...{ id, ...owner, endpoint: "/v1/chat/completions", inputFileId: input.id, completionWindow: "24h" },
			...{ metadata: null, outputExpiresS, idempotencyKey: null },
			windowMs,
		};
		await books.create(batch, 10_000);
		return id;
	}

	return {
		folder,
		executed,
		given,
		charged: () => charged.size * COST,
		/** Ids of the requests that the account finally pays for: charged and not refunded as lost. */
		async paid(): Promise<string[]> {
			const rows = await db.sql<{ id: string }[]>`select request_id::text as id from batch_lost_request`;
			const lost = new Set(rows.map(({ id }) => id));
			const ids = [...charged].filter((id) => !lost.has(id));
			return ids.map((id) => `req_${id.replaceAll("-", "")}`).sort();
		},
		files,
		books,
		live,
		create,
		/** Creates a batch of this many lines. */
		async createLines(lines: number) {
			const names = Array.from({ length: lines }, (_, at) => `line-${at}`);
			return { names, id: await create(names.map((name) => chatLine(name))) };
		},
		/** Begins a run of a batch that has this many lines. With `written` it has output files. */
		async begin(id: string, total = 1, written = false) {
			const run = (await books.take(id))?.batch.run ?? 0;
			const made = { output: newId("file"), error: newId("file") };
			if (written) {
				for (const file of Object.values(made))
					await files.writer(owner, { id: file, purpose: "batch_output", filename: "out" });
				await books.writes(id, run, made);
			}
			await books.begin(id, run, { model: "test-model", total });
			return { run, files: made };
		},
		async find(id: string): Promise<BatchRecord> {
			const batch = await books.find(owner.accountId, id);
			if (batch === undefined) throw new Error("the batch is gone");
			return batch;
		},
		async lines(fileId: string | null) {
			if (fileId === null) return [];
			const record = await files.find(owner.accountId, fileId);
			if (record === undefined) throw new Error("the file is gone");
			const text = await new Response(files.read(record)).text();
			return text
				.split("\n")
				.filter(Boolean)
				.map((line) => JSON.parse(line));
		},
	};
}

function isWriter(value: unknown): value is object {
	return typeof value === "object" && value !== null && "seal" in value;
}

function fastClock(isDead: () => boolean): Clock {
	return {
		wallMs: () => Date.now(),
		monotonicMs: () => performance.now() * SPEED,
		after(delayMs, run) {
			const timer = setTimeout(() => {
				if (!isDead()) run();
			}, delayMs / SPEED);
			return () => clearTimeout(timer);
		},
	};
}
