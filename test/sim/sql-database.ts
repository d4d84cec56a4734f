import type postgres from "postgres";
import { createPgHeartbeatStore } from "../../src/cluster/heartbeat.ts";
import { createPgFenceStore } from "../../src/cluster/pg-fence-store.ts";
import type { Statements, StatementValue } from "../../src/db/statements.ts";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { keyLoader } from "../../src/keys/keyring.ts";
import { createPgShareStore } from "../../src/keys/limit-shares.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { type Call, historyOf, type SimDatabase } from "./database.ts";
import { excuseLostData, settledRequestIds } from "./failover.ts";
import { instanceKey } from "./model-store.ts";
import type { SqlMirror } from "./sql-mirror.ts";
import { FOLLOWED_TABLES } from "./sql-schema.ts";
import type { SqlServer, StatementFate } from "./sql-server.ts";
import { GRACE_MS } from "./terms.ts";
import type { World } from "./world.ts";

const AT_ONCE: StatementFate = { commitMs: 0, fuse: null };

/** The product's statements on a real Postgres. The product's own stores send them. */
export function createSqlDatabase(world: Omit<World, "database">, server: SqlServer, mirror: SqlMirror): SimDatabase {
	const { model, random, timeline } = world;

	/** As in the model's server, statements of revocations take time, and others sometimes do. */
	function fateOf(text: string, values: readonly StatementValue[]): StatementFate {
		const delicate = delicateOf(text, values);
		if (delicate) world.onDelicate(delicate);
		if (!world.stormy) return AT_ONCE;
		const fuse = random.chance(0.01) ? random.int(0, 3) : null;
		if (fuse !== null) world.count("cancelled in the midst");
		if (delicate) return { commitMs: random.fraction() * random.pick([1, 600, 600]), fuse };
		// Usually no longer than other statements, rarely longer than any deadline.
		const mostMs = random.pick([0, 0, 0, 0, 0, 0, 0, 20, 20, random.pick([20, 200, 1_500])]);
		return { commitMs: random.fraction() * mostMs, fuse };
	}

	function delicateOf(text: string, [id, epoch]: readonly StatementValue[]): "renewal" | "go live" | undefined {
		if (text.includes("instance_go_live")) return "go live";
		if (!text.includes("instance_renew")) return undefined;
		const instance = model.instances.get(instanceKey(String(id), Number(epoch)));
		const isLate = instance && instance.leaseUntilMs < timeline.nowMs() + world.serverAheadMs - GRACE_MS;
		return isLate ? "renewal" : undefined;
	}

	/** Gives the product's stores a client that sends through `call`. */
	function statementsOf(call: Call): Statements {
		const run = <Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]) => {
			const text = strings.join(" ");
			const label = /from (\w+)|select (\w+)/.exec(text)?.[0] ?? "statement";
			return call<Row[]>(label, (done, fail) => {
				const log = (what: string) =>
					world.log?.(`${timeline.nowMs().toFixed(1)} ${text.trim()} ${JSON.stringify(values)} -> ${what}`);
				server.statement<Row>(strings, values, () => fateOf(text, values))(
					(rows) => {
						log(JSON.stringify(rows));
						done(rows);
					},
					(error) => {
						log(String(error));
						fail(error);
					},
				);
			});
		};
		return Object.assign(run, { end: async () => {} });
	}

	/** Statements of operators and faults, which no process sends and which arrive at once. */
	const directly = statementsOf((_label, statement) => new Promise((resolve, reject) => statement(resolve, reject)));
	const ignored = () => {};
	let laidDown: Promise<unknown> = Promise.resolve();
	/** Queues the statements that set up the world, so that they run one after the other. */
	function inTurn(work: () => Promise<unknown>): void {
		laidDown = laidDown.then(work);
	}

	return {
		get up() {
			return server.up;
		},
		set up(value) {
			server.up = value;
		},
		crash: () => server.crash(),
		standby: createSqlStandby(world, server, mirror),
		heartbeats: (call) => createPgHeartbeatStore(statementsOf(call), historyOf(call)),
		fence: (call) => createPgFenceStore(statementsOf(call)),
		ledger: (call, _name, id, epoch) => createPgLedgerStore({ statements: statementsOf(call) }, id, epoch),
		keyLoader: (call) => keyLoader(statementsOf(call), historyOf(call)),
		revoke: (call, id) => revokeKey(statementsOf(call), { id }),
		addAccount(id, credit) {
			inTurn(
				() => directly`
					with a as (insert into account (id, email, name, topped_up, signed_in_at)
						values (${id}, ${`${id}@example.com`}, ${id}, true, clock_timestamp()) returning id)
					insert into budget (id, kind, account_id, limit_nano_usd) select id, 'account', id, 0 from a`,
			);
			const opening = `opening ${id}`;
			inTurn(
				// Promotional credit, so that its unspent rest can be taken back.
				() => directly`
					with a as (insert into credit_adjustment (id, account_id, kind, amount_nano_usd, reason, idempotency_key, state, first_by)
						values (${opening}, ${id}, 'promotion', ${credit}, '', ${opening}, 'booked', 'sim'))
					select promotion_give(${opening}, ${id}, ${credit}, ${opening}, 'sim', '', ${opening}, null)`,
			);
		},
		addKey(id, account, limit, { requestsPerMinute, concurrencyMax, tokensPerMinute }, daily, project) {
			inTurn(
				() => directly`
					with k as (insert into api_key (id, account_id, name, digest, prefix, last_four, cap_nano_usd, cap_period, requests_per_minute, concurrency_max, tokens_per_minute, project_id)
						values (${id}, ${account}, ${id}, ${id}, 'sk', '0000', ${limit}::bigint, ${daily ? "day" : "lifetime"}, ${requestsPerMinute}::integer, ${concurrencyMax}::integer, ${tokensPerMinute}::integer, ${project}) returning *)
					insert into budget (id, kind, account_id, limit_nano_usd) select id, 'key', account_id, case when cap_period = 'lifetime' then cap_nano_usd end from k`,
			);
		},
		addProject(id, account, capNanoUsd, daily) {
			const patch = JSON.stringify({ name: id, capNanoUsd, capPeriod: daily ? "day" : "lifetime" });
			inTurn(() => directly`select project_create(${id}, ${account}, ${patch}::text::jsonb)`);
		},
		shares: (call, instanceLease) => createPgShareStore({ statements: statementsOf(call), instanceLease }),
		adjust(account, amount, moved) {
			const [id, ref, by] = [random.uuid(), `money ${timeline.nowMs()}`, amount()];
			(by % 3 === 0
				? directly`select promotion_end(p.seq, ${id}, ${id}) from promotion p where p.account_id = ${account} and p.left_nano_usd > 0`
				: directly`select ledger_book(${id}, ${account}, 'adjustment', ${by}, ${ref}, 'sim', '', false)`
			).then(moved, ignored);
		},
		setCap(key, limit, moved) {
			if (key.startsWith("proj_")) {
				const patch = JSON.stringify({ capNanoUsd: limit() });
				directly`select project_update(${key}, null, ${patch}::text::jsonb, null)`.then(moved, ignored);
				return;
			}
			directly`select key_update(${key}, null, ${JSON.stringify({ capNanoUsd: limit() })}::text::jsonb, null)`.then(
				moved,
				ignored,
			);
		},
		fenceOff(id, epoch, beat) {
			directly`select instance_stand(${id}, ${epoch}, ${beat}, array['joining', 'live', 'silent'], 'dead', null, null)`.catch(
				ignored,
			);
		},
		closeLost(id, epoch) {
			directly`select closed, done from lease_close(${id}, ${epoch}, true, 1000)`.catch(ignored);
		},
		hold(rows) {
			if (!server.up) return ignored;
			return server.lock(async (sql) => {
				for (const row of rows) {
					const [kind = "", name = ""] = row.split(" ");
					const [budget = "", instance = "", epoch = ""] = name.split("|");
					if (kind === "budget") await sql`select 1 from budget where id = ${name} for update skip locked`;
					else if (kind === "reservation")
						await sql`select 1 from reservation where request_id = ${name} for update skip locked`;
					else
						await sql`
							select 1 from lease where budget_id = ${budget} and instance_id = ${instance} and epoch = ${Number(epoch)}
							for update skip locked`;
				}
			});
		},
	};
}

/** Tables that a standby copies: those of money, keys and instances. */
const COPIED = [...FOLLOWED_TABLES, "api_key", "lease_op", "key_share", "server_seen"];

/** Creates an asynchronous standby. After its promotion, commits after its copy are lost. */
function createSqlStandby(
	world: Omit<World, "database">,
	server: SqlServer,
	mirror: SqlMirror,
): NonNullable<SimDatabase["standby"]> {
	let isCopied = false;

	async function copy(sql: postgres.Sql): Promise<void> {
		await sql.unsafe("begin isolation level repeatable read");
		for (const table of COPIED) {
			await sql.unsafe(`drop table if exists copy.${table}`);
			await sql.unsafe(`create table copy.${table} as table public.${table}`);
		}
		await sql.unsafe("drop table if exists copy.tickets");
		await sql.unsafe("create table copy.tickets as select last_value, is_called from public.recall_ticket");
		await sql.unsafe("commit");
		// Commits after the copy get a later position.
		await sql.unsafe("select setval('sim.position', last_value + 1) from sim.position");
	}

	async function restore(sql: postgres.Sql, goesBack: boolean): Promise<void> {
		await sql.unsafe("begin");
		await sql.unsafe("set local session_replication_role = replica");
		await sql.unsafe(`truncate ${COPIED.map((table) => `public.${table}`).join(", ")} cascade`);
		for (const table of COPIED) await sql.unsafe(`insert into public.${table} select * from copy.${table}`);
		await sql.unsafe("select setval('public.recall_ticket', last_value, is_called) from copy.tickets");
		if (goesBack) await sql.unsafe("select setval('sim.position', last_value - 1) from sim.position");
		else await sql.unsafe("select setval('sim.timeline', last_value + 1) from sim.timeline");
		await sql.unsafe("commit");
		const revoked = await sql<{ id: string }[]>`select id from api_key where state = 'revoked'`;
		const known = settledRequestIds(world);
		await mirror.readAll();
		excuseLostData(world, known, new Set(revoked.map(({ id }) => id)));
	}

	return {
		copy() {
			server.task(copy, () => {
				isCopied = true;
			});
		},
		promote(promoted) {
			if (isCopied) server.task((sql) => restore(sql, false), promoted);
			else promoted();
		},
		goBack(gone) {
			if (isCopied) server.task((sql) => restore(sql, true), gone);
			else gone();
		},
	};
}
