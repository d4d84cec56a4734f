import { expect, test } from "bun:test";
import { LONG } from "../support/long-form.ts";
import { withCutOffWorld } from "./cut-off-world.ts";
import { rightTakingActs } from "./right-taking.ts";

const world = await withCutOffWorld();
const { service, owner, at, cli, served } = world;
const { sql } = service.db;
const { acts, ownedKey, staged: stageAll } = rightTakingActs(world);
/** The short run tests each action from one caller, because all callers wait in the same function. */
const oneOfEach = new Set(
	LONG ? acts : [...Map.groupBy(acts, ({ act }) => act).values()].flatMap((ways, at) => ways[at % ways.length] ?? []),
);

test("a key rotation returns the secret even if Postgres fails before all apply it", async () => {
	const old = await ownedKey();
	const rotate = (token: string) =>
		owner.send("POST", `/api/console/keys/${old.id}/rotate?${at}`, { graceMs: 0, token });
	const [question] =
		await sql`select p.oid::regprocedure::text as name from pg_proc p where p.proname = 'instance_lagging'`;
	await sql.unsafe(`alter function ${question?.name} rename to instance_lagging_away`);
	const token = crypto.randomUUID();
	const first = await rotate(token);
	expect([first.status, first.body.fence.effective, first.body.fence.known]).toEqual([200, false, false]);
	await sql.unsafe(
		`alter function ${String(question?.name).replace("instance_lagging", "instance_lagging_away")} rename to instance_lagging`,
	);
	const again = await rotate(token);
	expect([again.body.key.id, again.body.secret]).toEqual([first.body.key.id, first.body.secret]);
	expect(again.body.fence.effective).toBe(true);
	expect([await served(old.secret), await served(again.body.secret)]).toEqual([false, true]);
	expect((await rotate(crypto.randomUUID())).status).toBe(409);
});

test("a change is not reported as effective if a failover lost its entry", async () => {
	const staged = await stageAll(oneOfEach);
	const [question] = await sql`
		select n.nspname as schema, pg_get_functiondef(p.oid) as definition
		from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.proname = 'instance_lagging'`;
	const name = `${question?.schema}.instance_lagging`;
	await sql.unsafe(`alter function ${name} rename to instance_lagging_there`);
	await sql.unsafe(`
		create function ${name}(p_seq bigint, p_at_micros bigint)
		returns table (id text, epoch integer, beat bigint, ttl_ms integer, lease_until timestamptz) language plpgsql as $$
		begin
		  update control_log l set at = l.at + interval '1 microsecond' where l.seq = p_seq and control_at(l.at) = p_at_micros;
		  return query select * from instance_lagging_there(p_seq, p_at_micros);
		end $$`);
	const said = await Promise.all(
		staged.map(async ([{ act, from, run }, stage]) => ({ act: `${act} by ${from}`, inForce: await run(stage) })),
	);
	await sql.unsafe(`drop function ${name}`);
	await sql.unsafe(`alter function ${name}_there rename to instance_lagging`);
	expect(said).toEqual(staged.map(([{ act, from }]) => ({ act: `${act} by ${from}`, inForce: false })));
	expect(await cli("key", "revoke", staged[0]?.[1].id ?? "")).toBe(true);
}, 60_000);
