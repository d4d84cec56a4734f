import { drainMicrotasks } from "bun:jsc";
import type postgres from "postgres";
import { DatabaseBusy } from "../../src/db/outage.ts";
import type { StatementValue } from "../../src/db/statements.ts";
import { sqlState } from "../../src/ledger/pg-store.ts";
import type { Statement } from "./server.ts";
import type { SqlMirror } from "./sql-mirror.ts";
import type { SqlSchema } from "./sql-schema.ts";
import { EPOCH_MS } from "./terms.ts";
import type { World } from "./world.ts";

/** How the server treats a statement. */
export interface StatementFate {
	/** Milliseconds of simulated time for which the statement holds its locks before it commits; 0: commits at once. */
	readonly commitMs: number;
	/** Number of changed rows after which the statement is cancelled; null: never. */
	readonly fuse: number | null;
}

export type SqlServer = ReturnType<typeof createSqlServer>;

interface Session {
	readonly sql: postgres.Sql;
	readonly pid: number;
}

interface Work {
	readonly order: number;
	readonly label: string;
	session: Session | undefined;
	/**
	 * running: Postgres executes it. waiting: for a lock. open: executed but not committed. over: reported to its caller.
	 */
	state: "running" | "waiting" | "open" | "over";
	running: Promise<void>;
	ended: Error | undefined;
	/** Work that remains after Postgres has executed the statement. */
	finish: (() => void) | undefined;
	cancelled: boolean;
	inTransaction: boolean;
	/** Called if the transaction of the statement is aborted before its commit. */
	aborted: ((error: Error) => void) | undefined;
}

/** The product's `lock_timeout` for clients that send single statements. */
const LOCK_TIMEOUT_MS = 500;

/** The error that clients throw for a locked row that a function does not wait for. */
const clientsError = (error: unknown) =>
	sqlState(error) === "55P03" ? new DatabaseBusy("a row that the statement needs is held") : error;

/** A Postgres in simulated time: time advances only when each statement has ended or waits for a lock. */
export function createSqlServer(
	world: Omit<World, "database">,
	parts: {
		schema: SqlSchema;
		monitor: postgres.Sql;
		mirror: SqlMirror;
		announce: (channel: string, payload: string) => void;
	},
) {
	const { timeline } = world;
	const { schema, monitor, mirror } = parts;
	const works = new Set<Work>();
	const idle: Session[] = [];
	const all: postgres.Sql[] = [];
	let orders = 0;

	const nowUs = () => Math.floor((EPOCH_MS + timeline.nowMs() + world.serverAheadMs) * 1000);

	async function takeSession(): Promise<Session> {
		const session = idle.pop();
		if (session) return session;
		const sql = schema.connect(`session ${all.length}`);
		all.push(sql);
		const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
		return { sql, pid: row?.pid ?? 0 };
	}

	function begin(label: string, run: (work: Work) => Promise<() => void>): Work {
		const work: Work = {
			order: orders++,
			label,
			session: undefined,
			state: "running",
			running: Promise.resolve(),
			ended: undefined,
			finish: undefined,
			cancelled: false,
			inTransaction: false,
			aborted: undefined,
		};
		works.add(work);
		resume(work, () => run(work));
		return work;
	}

	function resume(work: Work, run: () => Promise<() => void>): void {
		work.state = "running";
		work.running = run().then((finish) => {
			work.finish = finish;
		});
	}

	function over(work: Work): void {
		work.state = "over";
		works.delete(work);
		if (work.session) idle.push(work.session);
		work.session = undefined;
	}

	/** Schedules the cancellation of a statement that does not get its locks in time. */
	function cancelLater(work: Work): void {
		timeline.after(LOCK_TIMEOUT_MS, `server: lock timeout of ${work.label}`, () => {
			if (work.state === "waiting") cancel(work, new DatabaseBusy("a row that the statement needs is held"));
		});
	}

	function cancel(work: Work, reason: Error): void {
		const pid = work.session?.pid;
		if (work.cancelled || pid === undefined) return;
		work.cancelled = true;
		work.ended = reason;
		world.count("cancelled while it waited");
		begin("cancel", async (own) => {
			await monitor`select pg_cancel_backend(${pid})`;
			return () => over(own);
		});
	}

	const rollback = (work: Work) => work.session?.sql.unsafe("rollback") ?? Promise.resolve();

	function statement<Row>(
		strings: TemplateStringsArray,
		values: readonly StatementValue[],
		fateOf: () => StatementFate,
	): Statement<Row[]> {
		return (done, fail) => {
			const { commitMs, fuse } = fateOf();
			const label = strings.join(" ").trim().slice(0, 60).replace(/\s+/g, " ");
			begin(label, async (own) => {
				own.session = await takeSession();
				const { sql } = own.session;
				own.inTransaction = commitMs > 0;
				try {
					await Promise.all([
						sql`select setval('clock', ${nowUs()}::bigint), set_config('sim.fuse', ${fuse === null ? "" : String(fuse)}, false)`,
						...(commitMs > 0 ? [sql.unsafe("begin")] : []),
					]);
					const rows = (await sql(strings, ...values)) as unknown as Row[];
					if (commitMs === 0)
						return () => {
							over(own);
							done(rows);
						};
					return () => {
						own.state = "open";
						own.aborted = fail;
						timeline.after(commitMs, `server: commit of ${label}`, () => commit(own, () => done(rows), fail));
					};
				} catch (error) {
					if (commitMs > 0) await rollback(own);
					own.inTransaction = false;
					return () => {
						over(own);
						fail(own.ended ?? clientsError(error));
					};
				}
			});
		};
	}

	function commit(work: Work, done: () => void, fail: (error: unknown) => void): void {
		if (work.state !== "open") return;
		resume(work, async () => {
			const failure = await work.session?.sql.unsafe("commit").then(
				() => undefined,
				(error: unknown) => error,
			);
			work.inTransaction = false;
			return () => {
				over(work);
				if (failure === undefined) done();
				else fail(failure);
			};
		});
	}

	function end(work: Work, after: Promise<unknown>, tell: () => void): void {
		resume(work, async () => {
			await after;
			await rollback(work);
			work.inTransaction = false;
			return () => {
				over(work);
				tell();
			};
		});
	}

	/** Resolves once every statement that runs has ended or waits for a lock. */
	async function settle(): Promise<void> {
		for (const work of works) if (work.state === "waiting") work.state = "running";
		for (;;) {
			const running = [...works].filter(({ state, finish }) => state === "running" && finish === undefined);
			if (running.length === 0) return;
			const mayWait = [...works].some(({ state }) => state === "open") || running.length > 1;
			const ends = Promise.race(running.map((work) => work.running));
			if (!mayWait) await ends;
			else if (await isStuck(running, ends)) {
				for (const work of running) {
					work.state = "waiting";
					world.count("waited for a lock");
					cancelLater(work);
				}
				return;
			}
		}
	}

	/** True if, in one snapshot of `pg_locks`, each running statement waits for a lock of another one. */
	async function isStuck(running: readonly Work[], ends: Promise<void>): Promise<boolean> {
		const first = await Promise.race([ends.then(() => "ended"), Bun.sleep(3)]);
		if (first === "ended") return false;
		const rows = await monitor<{ pid: number }[]>`select distinct pid from pg_locks where not granted`;
		const waiting = new Set(rows.map(({ pid }) => pid));
		return running.every(
			({ finish, session }) => finish === undefined && session !== undefined && waiting.has(session.pid),
		);
	}

	return {
		up: true,
		statement,
		/** Opens a transaction of another session, which holds its locks until the returned function is called. */
		lock(work: (sql: postgres.Sql) => Promise<unknown>) {
			const own = begin("somebody's locks", async (self) => {
				self.session = await takeSession();
				await self.session.sql.unsafe("begin");
				await work(self.session.sql).catch(() => {});
				return () => {
					self.state = "open";
				};
			});
			return () => {
				if (own.state === "open") end(own, Promise.resolve(), () => {});
			};
		},
		/** Changes the server itself, and calls `done` at the end of the work. */
		task(work: (sql: postgres.Sql) => Promise<unknown>, done: () => void) {
			begin("task", async (own) => {
				own.session = await takeSession();
				await work(own.session.sql);
				return () => {
					over(own);
					done();
				};
			});
		},
		crash() {
			this.up = false;
			const down = new Error("the server went down");
			const waiting = [...works].filter(({ state }) => state === "waiting");
			for (const work of waiting) cancel(work, down);
			const gone = Promise.all(waiting.map((work) => work.running));
			for (const work of works) {
				if (work.state !== "open") continue;
				end(work, gone, () => work.aborted?.(down));
			}
		},
		/** Resolves when all running statements wait for locks and all commits are known. */
		async atRest() {
			for (;;) {
				await settle();
				const finished = [...works].filter(({ finish }) => finish !== undefined).sort((a, b) => a.order - b.order);
				if (finished.length === 0) return;
				const isQuiet = [...works].every(({ finish, inTransaction }) => finish !== undefined && !inTransaction);
				const announced = await mirror.read(isQuiet);
				for (const work of finished) {
					const { finish } = work;
					work.finish = undefined;
					finish?.();
				}
				for (const { channel, payload } of announced) parts.announce(channel, payload);
				drainMicrotasks();
			}
		},
		async end() {
			await Promise.all(all.map((sql) => sql.end({ timeout: 1 })));
		},
	};
}
