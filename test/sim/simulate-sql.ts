import type postgres from "postgres";
import { CONTROL_CHANNEL } from "../../src/cluster/control-log.ts";
import type { Statements, StatementValue } from "../../src/db/statements.ts";
import { LIMITS_CHANNEL } from "../../src/keys/limit-shares.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { type SimOptions, type SimResult, simulateBeside, variant } from "./simulate.ts";
import { createSqlDatabase } from "./sql-database.ts";
import { createSqlMirror } from "./sql-mirror.ts";
import { type ChangedFunctions, createSqlSchema } from "./sql-schema.ts";
import { createSqlServer, type SqlServer } from "./sql-server.ts";
import { createWorld, Violation, type World } from "./world.ts";

/** Smaller numbers than in the model's world, because each statement is a round trip to Postgres. */
const TERMS = {
	trafficMs: 20_000,
	restMs: 45_000,
	isLimited: true,
	hasProjects: false,
	hasCuts: false,
	goesBack: false,
};
/** Milliseconds of simulated time between runs of the product's check of the books. */
const CHECK_MS = 5_000;

/** Like `simulate`, but with the real functions on a real Postgres: the same world, time, faults and invariants. */
export async function simulateSql(
	seed: number,
	options: SimOptions & { changed?: ChangedFunctions } = {},
): Promise<SimResult> {
	const schema = await createSqlSchema(options.changed);
	const monitor = schema.connect("monitor");
	let server: SqlServer | undefined;
	const make = (unfinished: Omit<World, "database">) => {
		const mirror = createSqlMirror(unfinished, monitor);
		const announce = (channel: string, payload: string) => announceTo(unfinished, channel, payload);
		server = createSqlServer(unfinished, { schema, monitor, mirror, announce });
		return createSqlDatabase(unfinished, server, mirror);
	};
	try {
		const world = createWorld(seed, options.mutant, options.log, make, { ...TERMS, ...variant(options) });
		let checkedMs = 0;
		const atRest = async () => {
			await server?.atRest();
			if (world.timeline.nowMs() < checkedMs + CHECK_MS) return;
			checkedMs = world.timeline.nowMs();
			await checkBooks(monitor);
		};
		return await simulateBeside(world, atRest);
	} finally {
		await server?.end();
		await monitor.end({ timeout: 1 });
		await schema.drop();
	}
}

/** Runs the product's check of the books in a snapshot of committed data. */
async function checkBooks(monitor: postgres.Sql): Promise<void> {
	const statements: Statements = Object.assign(
		async <Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]) =>
			(await monitor(strings, ...values)) as unknown as Row[],
		{ end: async () => {} },
	);
	const { ok, checks } = await reconcile(statements);
	if (ok) return checkCaps(monitor);
	throw new Violation(
		`the books do not reconcile: ${checks.filter((check) => !check.ok).map(({ name, detail }) => `${name} ${detail}`)}`,
	);
}

/** Checks that each cap is the limit of the lifetime budget, or of the current period's budget if it renews. */
async function checkCaps(monitor: postgres.Sql): Promise<void> {
	const wrong = await monitor`
		select g.id, g.limit_nano_usd as limit, c.cap from (
			select cap_budget(k) as budget, k.cap_nano_usd as cap from api_key k
			union all select cap_budget(p), p.cap_nano_usd from project p
			union all select k.id, null from api_key k where k.cap_period <> 'lifetime'
			union all select p.id, null from project p where p.cap_period <> 'lifetime'
		) c join budget g on g.id = c.budget
		where g.limit_nano_usd is distinct from c.cap and g.lift_seq is null`;
	if (wrong.length > 0) throw new Violation(`budgets have other limits than their caps: ${JSON.stringify(wrong)}`);
}

function announceTo(world: Omit<World, "database">, channel: string, payload: string): void {
	if (channel === LIMITS_CHANNEL) for (const listener of world.limitListeners) listener(payload);
	else for (const listener of channel === CONTROL_CHANNEL ? world.listeners : world.recallListeners) listener();
}
