import { beforeEach, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { createFixedCatalog } from "../../src/catalog/catalog.ts";
import { createDeployments, deleteOldReports } from "../../src/deployments/deployments.ts";
import { startReportWriter } from "../../src/deployments/report-writer.ts";
import type { ReplicaView } from "../../src/upstream/replicas/replica.ts";
import { chatSpec } from "../catalog/model-specs.ts";
import { withDatabase } from "../support/database.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { UPSTREAM_SPEC } from "../support/upstream-set.ts";
import { waitFor } from "../support/wait.ts";

const database = await withDatabase();
const { statements } = database;
const clock = createManualClock();

const writers: ReturnType<typeof startReportWriter>[] = [];
beforeEach(async () => {
	for (const writer of writers.splice(0)) await writer.stop();
	await database.sql`truncate gateway_report, instance_beat`;
});

const replica = (more: Partial<ReplicaView> = {}): ReplicaView => ({
	alias: "m#0",
	modelId: "m",
	url: "http://10.0.0.1/v1",
	dialect: "vllm",
	health: "up",
	breaker: "closed",
	inFlight: 0,
	maxConcurrency: 8,
	draining: false,
	refused: 0,
	contradictions: 0,
	promptTokens: 0,
	cachedTokens: 0,
	waitMs: 0,
	...more,
});

async function gateway(instanceId: string, options: { live?: boolean; models?: string[] } = {}) {
	const catalog = createFixedCatalog({ statements, clock, log: silentLog });
	let replicas: readonly ReplicaView[] = [replica()];
	await catalog.setModels(
		(options.models ?? ["m"]).map((id) => ({ ...chatSpec(id), aliases: [`${id}-alias`], upstreams: [secretUpstream] })),
	);
	const writer = startReportWriter(
		{ statements, clock, log: silentLog, catalog, upstreams: { replicas: () => replicas } },
		{ instanceId },
	);
	writers.push(writer);
	await database.sql`insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until)
		values (${instanceId}, 1, 1, ${options.live === false ? "left" : "live"}, 30000, now() + interval '30 seconds')`;
	return {
		catalog,
		writer,
		async see(...seen: ReplicaView[]) {
			replicas = seen;
			await writer.write();
		},
	};
}
const secretUpstream = { ...UPSTREAM_SPEC, apiKey: "sk-key-of-the-model-server" };

/** Reads the deployments like a console that has just started. */
const seen = () => createDeployments({ statements, clock }).current();

test("the console shows a gateway's models without the keys of model servers", async () => {
	const one = await gateway("a");
	await one.see(replica({ inFlight: 3 }));
	const view = await seen();
	expect(view.gateways).toBe(1);
	expect(view.models).toMatchObject([
		{ id: "m", kind: "chat", modes: ["chat"], rateCard: { id: "m@1", input: 230_000 } },
	]);
	expect(view.find("m-alias")?.id).toBe("m");
	expect(view.replicas).toEqual([replica({ inFlight: 3 })]);
	expect(view.connected("m")).toBe(true);
	const rows = await database.sql`select * from gateway_report`;
	expect(JSON.stringify(rows)).not.toContain("sk-key");
});

test("the console adds up the loads of all gateways and shows the worst state", async () => {
	const [one, two] = [await gateway("a"), await gateway("b")];
	const [cache, moreCache] = [
		{ promptTokens: 5, cachedTokens: 2, waitMs: 40 },
		{ promptTokens: 6, cachedTokens: 4, waitMs: 30 },
	];
	await one.see(
		replica({ inFlight: 3, health: "down", ...cache }),
		replica({ alias: "m#1", url: "http://10.0.0.2/v1" }),
	);
	await two.see(replica({ inFlight: 4, breaker: "half_open", ...moreCache }));
	const view = await seen();
	expect(view.gateways).toBe(2);
	expect(view.replicas[0]).toMatchObject({ promptTokens: 11, cachedTokens: 6, waitMs: 40 });
	expect(view.replicas).toEqual([
		expect.objectContaining({ alias: "m#0", inFlight: 7, maxConcurrency: 16, health: "down", breaker: "half_open" }),
		expect.objectContaining({ alias: "m#1", maxConcurrency: 8 }),
	]);
	expect(view.connected("m")).toBe(true);
	await one.see(replica({ health: "down" }));
	await two.see(replica({ health: "down" }));
	expect((await seen()).connected("m")).toBe(false);
});

test("the console shows the last known models as disconnected if no gateway runs", async () => {
	const one = await gateway("a", { models: ["m", "n"] });
	await one.see(replica({ modelId: "n" }));
	for (const gone of ["state = 'left'", "state = 'live', lease_until = now() - interval '1 minute'"]) {
		await database.sql.unsafe(`update instance_beat set ${gone}`);
		const view = await seen();
		expect(view.gateways).toBe(0);
		expect(view.models.map(({ id }) => id)).toEqual(["m", "n"]);
		expect(view.connected("n")).toBe(false);
	}
	await database.sql`truncate gateway_report`;
	expect(await seen()).toMatchObject({ gateways: 0, models: [], replicas: [] });
});

test("a gateway rewrites its report only after a change", async () => {
	const one = await gateway("a");
	await one.see(replica());
	const [before] = await database.sql`select at, xmin::text from gateway_report`;
	clock.advance(10_000);
	await one.writer.write();
	expect((await database.sql`select at, xmin::text from gateway_report`)[0]).toEqual(before as object);
	await one.catalog.setModels([chatSpec("other")]);
	await waitFor(async () => (await seen()).models[0]?.id === "other", "the new catalogue");
});

test("concurrent reads of the gateways' reports share one query", async () => {
	await (await gateway("a")).see(replica());
	const console = createDeployments({ statements, clock });
	const [first, second] = await Promise.all([console.current(), console.current()]);
	expect(first).toBe(second as typeof first);
	clock.advance(1_000);
	expect(await console.current()).not.toBe(first);
});

test("a gateway deletes the reports of gateways that stopped long ago", async () => {
	for (const [id, live] of [
		["gone", false],
		["idle", true],
		["last", false],
	] as const)
		await (await gateway(id, { live })).see(replica());
	await database.sql`update gateway_report set at = now() - interval '2 days' where instance_id in ('gone', 'idle')`;
	await database.sql`update gateway_report set at = now() - interval '25 hours' where instance_id = 'last'`;
	await deleteOldReports(statements);
	const rows = await database.sql`select instance_id from gateway_report order by 1`;
	expect(rows.map((row) => row.instance_id)).toEqual(["idle", "last"]);
});

test("a gateway whose report was deleted writes it again at the next change of load", async () => {
	const one = await gateway("a");
	await one.see(replica());
	await database.sql`delete from gateway_report`;
	await one.see(replica({ inFlight: 1 }));
	await one.writer.write();
	expect(await seen()).toMatchObject({ gateways: 1, models: [{ id: "m" }], replicas: [{ inFlight: 1 }] });
});

test("an idle gateway renews its report", async () => {
	const one = await gateway("a");
	await one.see(replica());
	await database.sql`update gateway_report set at = now() - interval '2 days'`;
	clock.advance(3_600_000);
	await one.writer.write();
	const [row] = await database.sql`select at > now() - interval '1 minute' as young from gateway_report`;
	expect(row).toEqual({ young: true });
	await database.sql`delete from gateway_report`;
	clock.advance(3_600_000);
	await one.writer.write();
	await one.writer.write();
	expect((await seen()).models.map(({ id }) => id)).toEqual(["m"]);
});
