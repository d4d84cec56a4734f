import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { newUuid } from "../../src/base/id.ts";
import type { ConsoleParts } from "../../src/console/console-deps.ts";
import { readBalance, runningRequests } from "../../src/console/credit/credit.ts";
import { readHeldCredit, readKeyView } from "../../src/console/keys/key-view.ts";
import { listInstances } from "../../src/console/operator/operator-cluster.ts";
import { operatorSummary } from "../../src/console/operator/operator-summary.ts";
import { projectView } from "../../src/console/projects/project-routes.ts";
import { updateAccount } from "../../src/keys/account-admin.ts";
import { updateKey } from "../../src/keys/key-admin.ts";
import { createProject, getProject } from "../../src/keys/project-admin.ts";
import { formatUsd, type NanoUsd, parseUsd } from "../../src/money/nano-usd.ts";
import { withLookups } from "../gateway/lookups/lookups-world.ts";
import { goLive } from "../ledger/fixture.ts";
import { brokenSse } from "../support/upstream-endpoints.ts";
import { zoneByDay } from "../support/zone-by-day.ts";

const usd = (text: string) => parseUsd(text) as NanoUsd;
const { service, upstream, complete } = await withLookups();
const { sql, statements } = service.db;
const operators = {
	statements,
	config: { topUpSecondLook: null },
	deployments: { current: async () => ({ models: [], replicas: [], connected: () => true }) },
} as unknown as ConsoleParts;

/** Creates a dead instance whose leases hold these amounts, by budget. */
async function deadWith(amounts: Readonly<Record<string, NanoUsd>>): Promise<{ id: string; epoch: number }> {
	const id = newUuid();
	const epoch = await goLive(service.db, id);
	const wishes = Object.entries(amounts).map(([budget, amount]) => ({
		...{ op: newUuid(), budget, want: amount, min: amount, again: false, ticket: null },
	}));
	const granted = await sql`select amount from lease_grant(${id}, ${epoch}, ${JSON.stringify(wishes)}::text::json)`;
	expect(granted.map(({ amount }) => Number(amount))).toEqual(Object.values(amounts));
	await sql`update instance_beat set lease_until = now() - interval '1 minute' where id = ${id}`;
	return { id, epoch };
}

const periodOf = async (table: "api_key" | "project", id: string): Promise<string> => {
	const [row] = await sql`select cap_budget(x) as budget from ${sql(table)} x where id = ${id}`;
	return row?.budget as string;
};

test("a capped key shows only this period's credit held by a dead instance", async () => {
	const accountId = await service.account();
	await updateAccount(statements, accountId, { timeZone: zoneByDay() });
	const cap = { capNanoUsd: usd("1"), capPeriod: "day" } as const;
	const { id: projectId } = await createProject(statements, accountId, { name: "search", ...cap });
	const { id, secret } = await service.key(accountId, { ...cap, projectId });
	// The lifetime budgets have no cap, so their slices are larger than those of the periods' budgets.
	const [key, project] = [await periodOf("api_key", id), await periodOf("project", projectId)];
	await deadWith({ [id]: usd("3"), [key]: usd("0.25"), [projectId]: usd("3"), [project]: usd("0.5") });
	const { data } = await (await service.get("/v1/key", secret)).json();
	expect(data).toMatchObject({ held_usd: "0.25", remaining_usd: "0.75", limit_remaining: 0.75 });
	expect(data.project).toMatchObject({ remaining_usd: "0.50", limit_remaining: 0.5 });
});

test("key and project pages show credit held by a dead instance, as /v1/key does", async () => {
	const accountId = await service.account();
	const { id: projectId } = await createProject(statements, accountId, { name: "search", capNanoUsd: usd("2") });
	const { id, secret } = await service.key(accountId, { capNanoUsd: usd("1"), projectId });
	const instance = await deadWith({ [accountId]: usd("1"), [id]: usd("0.4"), [projectId]: usd("0.5") });
	await sql`insert into reservation (request_id, account_id, key_id, instance_id, epoch, model, reserved_nano_usd, admitted_at)
		values (${newUuid()}, ${accountId}, ${id}, ${instance.id}, ${instance.epoch}, 'text', 100000000, now())`;
	const { data } = await (await service.get("/v1/key", secret)).json();
	expect(data).toMatchObject({ held_usd: "0.40", remaining_usd: "0.60", project: { remaining_usd: "1.50" } });
	const shown = await readKeyView({ statements, clock: systemClock }, accountId, id);
	expect(formatUsd(shown.heldNanoUsd)).toBe(data.held_usd);
	const project = projectView(
		await getProject(statements, { id: projectId }),
		(await readHeldCredit("project", statements, accountId)).get(projectId)?.nanoUsd,
	);
	expect(formatUsd(project.heldNanoUsd)).toBe("0.50");
});

test("the console does not show requests of a dead instance as running", async () => {
	const accountId = await service.account();
	const { id } = await service.key(accountId);
	const { instanceId, epoch } = await living();
	const dead = await deadWith({ [accountId]: usd("1"), [id]: usd("1") });
	const reserve = (instance: string, at: number, nano: number) => sql`
		insert into reservation (request_id, account_id, key_id, instance_id, epoch, model, reserved_nano_usd, admitted_at)
		values (${newUuid()}, ${accountId}, ${id}, ${instance}, ${at}, 'text', ${nano}, now())`;
	await reserve(instanceId, epoch, 200_000_000);
	await reserve(dead.id, dead.epoch, 300_000_000);
	expect(formatUsd((await readBalance(statements, accountId)).heldNanoUsd)).toBe("1.20");
	const running = await runningRequests(statements, accountId);
	expect(running.map(({ reservedNanoUsd }) => formatUsd(reservedNanoUsd))).toEqual(["0.20"]);
	expect((await readHeldCredit("key", statements, accountId)).get(id)?.requests).toBe(1);
	await sql`delete from reservation where account_id = ${accountId}`;
});

test("credit held for a running request stays in its project if the key moves", async () => {
	const accountId = await service.account();
	const cap = { capNanoUsd: usd("1") };
	const { id: former } = await createProject(statements, accountId, { name: "former", ...cap });
	const { id: next } = await createProject(statements, accountId, { name: "next", ...cap });
	const [key, sister, other] = await Promise.all([
		service.key(accountId, { projectId: former }),
		service.key(accountId, { projectId: former }),
		service.key(accountId, { projectId: next }),
	]);
	const never = Promise.withResolvers<void>();
	upstream.next(() =>
		brokenSse([JSON.stringify({ choices: [{ index: 0, text: "x", finish_reason: null }] })], { stall: never.promise }),
	);
	const response = await complete(key.secret, { stream: true });
	await response.body?.getReader().read();
	const id = response.headers.get("x-request-id") as string;
	const { status, reserved_usd: reserved } = await (await service.get(`/v1/usage/${id}`, key.secret)).json();
	expect(status).toBe("running");
	const leftOf = async (secret: string) =>
		(await (await service.get("/v1/key", secret)).json()).data.project.remaining_usd;
	const held = async () => {
		const rows = [...(await readHeldCredit("project", statements, accountId))].filter(([project]) => project !== "");
		return Object.fromEntries(rows.map(([project, { nanoUsd }]) => [project, nanoUsd]));
	};
	const before = await leftOf(sister.secret);
	expect(Number(before)).toBeCloseTo(1 - Number(reserved), 9);
	await updateKey(statements, { id: key.id }, { projectId: next });
	expect(await leftOf(sister.secret)).toBe(before);
	expect(await leftOf(other.secret)).toBe("1.00");
	expect(await held()).toEqual({ [former]: usd(reserved) });
	never.resolve();
	await service.settled();
});

test("an operator sees a killed instance as silent, with the credit that it holds", async () => {
	const accountId = await service.account();
	const { id } = await service.key(accountId);
	const before = await operatorSummary(operators);
	const dead = await deadWith({ [accountId]: usd("1"), [id]: usd("1") });
	await sql`insert into reservation (request_id, account_id, key_id, instance_id, epoch, model, reserved_nano_usd, admitted_at)
		values (${newUuid()}, ${accountId}, ${id}, ${dead.id}, ${dead.epoch}, 'text', 300000000, now())`;
	const after = await operatorSummary(operators);
	expect(after.instances).toEqual({ live: before.instances.live, gone: before.instances.gone + 1 });
	expect(after.heldTooLong.filter(({ instanceId }) => instanceId === dead.id)).toHaveLength(1);
	const stateOf = async () => (await listInstances(statements)).find((item) => item.id === dead.id)?.state;
	expect(await stateOf()).toBe("silent");
	await sql`update instance_beat set state = 'silent' where id = ${dead.id}`;
	expect(await stateOf()).toBe("silent");
	expect((await operatorSummary(operators)).instances).toEqual(after.instances);
	await sql`delete from reservation where account_id = ${accountId}`;
});

async function living(): Promise<{ instanceId: string; epoch: number }> {
	const [row] = await sql`select id, epoch from instance_now where state = 'live' and lease_until > now()`;
	return { instanceId: row?.id as string, epoch: Number(row?.epoch) };
}
