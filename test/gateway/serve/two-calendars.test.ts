import { expect, test } from "bun:test";
import { updateAccount } from "../../../src/keys/account-admin.ts";
import { createProject } from "../../../src/keys/project-admin.ts";
import { nanoUsd } from "../../../src/money/nano-usd.ts";
import { withChat } from "../../support/service.ts";

/**
 * Renewing caps while gateway and Postgres disagree about a time zone, because either may have older time zone data.
 */

const { service } = await withChat();
const { sql } = service.db;

const cap = nanoUsd(1_000_000_000);
const zoneOf = (aheadH: number) => (aheadH === 0 ? "UTC" : `Etc/GMT${aheadH > 0 ? "-" : "+"}${Math.abs(aheadH)}`);
/** A time zone whose day began within this hour, a zone whose day begins in one to two hours, and the day before. */
function twoZones(): { begun: string; notBegun: string; dayBefore: string } {
	const hour = new Date().getUTCHours();
	const aheadH = hour <= 10 ? -hour : 24 - hour;
	const today = Temporal.Now.zonedDateTimeISO(zoneOf(aheadH)).toPlainDate();
	return { begun: zoneOf(aheadH), notBegun: zoneOf(aheadH - 2), dayBefore: today.subtract({ days: 1 }).toString() };
}
const chat = async (secret: string) => {
	const answer = await service.chat(secret, { model: "test-model", messages: [{ role: "user", content: "hi" }] });
	return { status: answer.status, text: await answer.text() };
};

test("a capped key stays in yesterday's cap period until midnight by Postgres's clock", async () => {
	const { begun, notBegun, dayBefore } = twoZones();
	const accountId = await service.account();
	await updateAccount(service.db.statements, accountId, { timeZone: begun });
	const project = await createProject(service.db.statements, accountId, {
		name: "p",
		capNanoUsd: cap,
		capPeriod: "day",
	});
	const own = await service.key(accountId, { capNanoUsd: cap, capPeriod: "day" });
	const inside = await service.key(accountId, { projectId: project.id });
	for (const { secret } of [own, inside]) expect((await service.get("/v1/key", secret)).status).toBe(200);
	// Changes the account's time zone in Postgres only; the gateway keeps the old zone.
	await sql`update account set time_zone = ${notBegun} where id = ${accountId}`;
	for (const { secret } of [own, inside]) for (let n = 0; n < 2; n++) expect((await chat(secret)).status).toBe(200);
	await service.settled();
	for (const owner of [own.id, project.id]) {
		const budgets = await sql`select id from budget where owner_id = ${owner}`;
		expect(budgets.map(({ id }) => id)).toEqual([`${owner}:day:${dayBefore}`]);
	}
	expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
});
