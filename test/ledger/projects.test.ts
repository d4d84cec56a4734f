import { expect, test } from "bun:test";
import type { CapPeriod } from "../../src/keys/cap-period.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import { createProject, getProject, updateProject } from "../../src/keys/project-admin.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { withDatabase } from "../support/database.ts";
import {
	creditedAccount,
	goLive,
	grantsOfFour,
	keyMaker,
	retrying,
	settledEvent,
	storesOf,
	usd,
	wish,
} from "./fixture.ts";

const db = await withDatabase();
const maker = keyMaker(db);
const storeOf = storesOf(db);

/** Creates a project with a cap and two keys in an account, in whose time zone it is noon. */
async function cappedProject(capPeriod: CapPeriod) {
	const account = await creditedAccount(db);
	const [row] = await db.sql`select 12 - extract(hour from clock_timestamp() at time zone 'UTC')::int as ahead`;
	const ahead = Number(row?.ahead);
	await db.sql`update account set time_zone = ${`Etc/GMT${ahead > 0 ? "-" : "+"}${Math.abs(ahead)}`} where id = ${account}`;
	const { id: project } = await createProject(db.statements, account, { name: "p", capNanoUsd: usd(1_000), capPeriod });
	const keys = await Promise.all(["a", "b"].map((name) => createKey(maker, account, { name, projectId: project })));
	const [day] = await db.sql`select cap_day(${account}, 'day', clock_timestamp())::text as day`;
	const limited = capPeriod === "lifetime" ? project : `${project}:day:${day?.day}`;
	return { account, project, limited, keys: keys.map(({ id }) => id) as [string, string] };
}

const budgetOf = async (id: string) =>
	(
		await db.sql`select kind, limit_nano_usd::float as cap, drawn_nano_usd::float as drawn, owner_id as owner from budget where id = ${id}`
	)[0];

for (const period of ["lifetime", "day"] as const)
	test(`four instances together draw no more of a project than its ${period} cap`, async () => {
		const { limited, keys, project } = await cappedProject(period);
		const granted = await grantsOfFour(db, limited, (n) => keys[n % 2] as string);
		expect(granted.filter(([, ofProject]) => ofProject === 90)).toHaveLength(11);
		expect(await budgetOf(limited)).toEqual({
			kind: "project",
			cap: 1_000,
			drawn: 990,
			owner: period === "day" ? project : null,
		});
	});

test("a project's period is busy while its cap changes; other periods grant nothing", async () => {
	const { limited, project } = await cappedProject("day");
	await goLive(db, "patient");
	await db.sql.begin(async (transaction) => {
		await transaction`select 1 from project where id = ${project} for update`;
		expect((await storeOf("patient").grant([wish(limited, 10)]))[0]).toMatchObject({ amount: 0, busy: true });
	});
	const [other] = await storeOf("patient").grant([wish(limited.replace(":day:", ":month:"), 10)]);
	expect(other).toMatchObject({ amount: 0, untimely: true });
	const [nobody] = await storeOf("patient").grant([wish(limited.replace(project, "proj_nobody"), 10)]);
	expect(nobody).toMatchObject({ amount: 0, untimely: false, busy: false });
});

test("a key's usage counts against its project, whether settled in time or late", async () => {
	const { account, project, limited, keys } = await cappedProject("day");
	const epoch = await goLive(db, "settles");
	const store = storeOf("settles", epoch);
	await store.grant([wish(limited, 600), wish(project, 600), wish(keys[0], 600), wish(account, 600)]);
	const charge = (nano: number, budgets?: string[]) =>
		settledEvent(account, keys[0], nano, budgets === undefined ? {} : { budgets });
	const batch = [charge(250, [project, limited]), charge(50), charge(10, [project])];
	expect(await store.flush(batch, "[]")).toMatchObject({ fresh: 3 });
	await retrying(store).close();
	await store.settleLate(JSON.stringify(charge(800, [project, limited])));
	const rows =
		await db.sql`select project_id as project, charged_nano_usd::float as charged, written_off_nano_usd::float as off from usage_event where key_id = ${keys[0]} order by charged_nano_usd`;
	expect(rows.map(({ project, charged, off }) => [project, charged, off])).toEqual([
		[project, 10, 0],
		[null, 50, 0],
		[project, 250, 0],
		[project, 750, 50],
	]);
	expect(await budgetOf(limited)).toMatchObject({ drawn: 1_000 });
	expect(await getProject(db.statements, { id: project })).toMatchObject({
		spentNanoUsd: 1_010,
		capSpentNanoUsd: 1_000,
	});
	expect(await reconcile(db.statements)).toMatchObject({ ok: true });
});

test("a project's new cap applies at once; the replaced cap also limits until all know", async () => {
	const { project } = await cappedProject("lifetime");
	const epoch = await goLive(db, "lifts");
	const store = storeOf("lifts", epoch);
	await store.grant([wish(project, 100)]);
	const { seq } = await updateProject(db.statements, { id: project }, { capPeriod: "day", capNanoUsd: usd(150) });
	expect((await store.grant([wish(project, 950)]))[0]).toMatchObject({ amount: 0, busy: true });
	await db.sql`select instance_renew(id, epoch, ${seq}, 60000) from instance_now where state = 'live'`;
	expect((await store.grant([wish(project, 950)]))[0]).toMatchObject({ amount: 950, available: null });
	expect(await budgetOf(project)).toMatchObject({ cap: null, drawn: 1_050 });
	await updateProject(db.statements, { id: project }, { capPeriod: "lifetime", capNanoUsd: usd(1_100) });
	expect((await store.grant([wish(project, 60)]))[0]).toMatchObject({ amount: 0, available: 50 });
});
