/** What is held of a cap or of credit is the same amount wherever it is said. */
import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { updateAccount } from "../../src/keys/account-admin.ts";
import { createProject } from "../../src/keys/project-admin.ts";
import type { NanoUsd } from "../../src/money/nano-usd.ts";
import { parseUsd } from "../../src/money/nano-usd.ts";
import { withLookups } from "../gateway/lookups/lookups-world.ts";
import { goLive } from "../ledger/fixture.ts";
import { zoneByDay } from "../support/zone-by-day.ts";

const usd = (text: string) => parseUsd(text) as NanoUsd;
const { service } = await withLookups();
const { sql, statements } = service.db;

/** An instance that died with so much of each budget. */
async function deadWith(amounts: Readonly<Record<string, NanoUsd>>): Promise<void> {
	const id = newUuid();
	const epoch = await goLive(service.db, id);
	const wishes = Object.entries(amounts).map(([budget, amount]) => ({
		...{ op: newUuid(), budget, want: amount, min: amount, again: false, ticket: null },
	}));
	const granted = await sql`select amount from lease_grant(${id}, ${epoch}, ${JSON.stringify(wishes)}::text::json)`;
	expect(granted.map(({ amount }) => Number(amount))).toEqual(Object.values(amounts));
	await sql`update instance_beat set lease_until = now() - interval '1 second' where id = ${id}`;
}

const periodOf = async (table: "api_key" | "project", id: string): Promise<string> => {
	const [row] = await sql`select cap_budget(x) as budget from ${sql(table)} x where id = ${id}`;
	return row?.budget as string;
};

test("what a dead instance holds of a cap that begins anew is what it holds of the present period", async () => {
	const accountId = await service.account();
	await updateAccount(statements, accountId, { timeZone: zoneByDay() });
	const cap = { capNanoUsd: usd("1"), capPeriod: "day" } as const;
	const { id: projectId } = await createProject(statements, accountId, { name: "search", ...cap });
	const { id, secret } = await service.key(accountId, { ...cap, projectId });
	// Its own budget has no limit then, so that more of it is given out at once.
	const [key, project] = [await periodOf("api_key", id), await periodOf("project", projectId)];
	await deadWith({ [id]: usd("3"), [key]: usd("0.25"), [projectId]: usd("3"), [project]: usd("0.5") });
	const { data } = await (await service.get("/v1/key", secret)).json();
	expect(data).toMatchObject({ held_usd: "0.25", remaining_usd: "0.75", limit_remaining: 0.75 });
	expect(data.project).toMatchObject({ remaining_usd: "0.50", limit_remaining: 0.5 });
});
