/** Operators see an account as its customer does: read-only, without secrets and files, and with an audit entry. */
import { expect, test } from "bun:test";
import { RIGHTS, type Right, roleHasRight } from "../../src/console/members/roles.ts";
import { ROUTE_RULES } from "../../src/console/members/route-rules.ts";
import { withService } from "../support/service.ts";
import { operator, PERSON_ENV, signedUp } from "./person.ts";

const service = await withService({ env: PERSON_ENV });
const boss = await operator(service);
const customer = await signedUp(service);
const other = await signedUp(service);
const { id: keyId, secret } = await service.key(customer.accountId);

/** Routes outside the table of rights: the console forwards these requests to a gateway. */
const FORWARDED = ["POST /playground/chat", "POST /batch-start", `GET /batch-files/file_${"0".repeat(32)}`];
const account = `account=${customer.accountId}`;
const pathOf = (route: string) =>
	`/api/console${route.split(" ")[1]}`.replace("/keys/:id", `/keys/${keyId}`).replace(/:\w+/g, "some");
const call = (route: string) => {
	const [method = ""] = route.split(" ");
	const month = route.includes("statement") ? `&month=${new Date().toISOString().slice(0, 7)}` : "";
	const path = `${pathOf(route)}?${account}${month}`;
	return method === "GET" ? boss.get(path) : boss.send(method, path);
};
const open = () => boss.send("POST", `/api/console/operator/accounts/${customer.accountId}/view`);

test("an operator who has opened no view sees only the operator's own accounts", async () => {
	expect((await boss.get(`/api/console/credit?${account}`)).status).toBe(404);
	expect((await other.send("POST", `/api/console/operator/accounts/${customer.accountId}/view`)).status).toBe(403);
	expect((await other.get(`/api/console/credit?${account}`)).status).toBe(404);
});

test("an operator's view shows what viewers may read, and no secrets or files", async () => {
	expect((await open()).body).toEqual({ id: customer.accountId });
	const audit = (await boss.get(`/api/console/operator/audit?subject=${customer.accountId}&action=account.view`)).body
		.items;
	expect(audit).toMatchObject([{ actorEmail: boss.email, accountId: customer.accountId }]);
	for (const route of [...Object.keys(ROUTE_RULES), ...FORWARDED]) {
		const rule = ROUTE_RULES[route];
		const who = typeof rule === "object" ? rule[0] : (rule ?? "");
		const isRight = who in RIGHTS && roleHasRight("viewer", who as Right);
		const isSeen = route.startsWith("GET ") && (who === "anybody" || isRight);
		if (route === "GET /live") continue;
		const answer = await call(route);
		expect([route, answer.status === 403]).toEqual([route, !isSeen]);
		expect(JSON.stringify(answer.body)).not.toContain(secret);
	}
	for (const path of ["summary", `accounts/${customer.accountId}`])
		expect((await boss.get(`/api/console/operator/${path}?${account}`)).status).toBe(403);
});

test("an operator's view shows the customer's account, keys and live figures", async () => {
	const { account: shown, user } = (await boss.get(`/api/console/me?${account}`)).body;
	expect(shown).toMatchObject({ id: customer.accountId, role: "viewer", viewing: true });
	expect(user.email).toBe(boss.email);
	const keys = (await boss.get(`/api/console/keys?${account}`)).body.items;
	expect(keys.map(({ id }: { id: string }) => id)).toContain(keyId);
	const reader = (await boss.fetch(`/api/console/live?topics=overview&${account}`)).body?.getReader();
	let text = "";
	while (!text.includes("event: overview")) text += new TextDecoder().decode((await reader?.read())?.value);
	await reader?.cancel();
});

test("an operator's view ends after an hour, or with the operator's role", async () => {
	const seen = async () => (await boss.get(`/api/console/credit?${account}`)).status;
	expect(await seen()).toBe(200);
	await service.db.sql`update audit_event set at = at - interval '1 hour' where action = 'account.view'`;
	expect(await seen()).toBe(404);
	await open();
	expect(await seen()).toBe(200);
	await service.db.sql`update console_user set operator = false where email = ${boss.email}`;
	expect(await seen()).toBe(404);
});
