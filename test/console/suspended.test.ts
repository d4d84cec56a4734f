import { expect, test } from "bun:test";
import { ROUTE_RULES, ROUTES_OF_SUSPENDED } from "../../src/console/members/route-rules.ts";
import { withChat } from "../support/service.ts";
import { operator, PERSON_ENV, signedUp } from "./person.ts";

const { service } = await withChat({ env: PERSON_ENV });
const ann = await signedUp(service);
const boss = await operator(service);
const { key } = (await ann.send("POST", "/api/console/keys", { name: "hers" })).body;
await boss.send("POST", `/api/console/operator/accounts/${ann.accountId}/suspend`, { reason: "because" });

const isOfPerson = (rule: unknown) => /person|anybody|operator/.test(String(rule));
const routes = Object.entries(ROUTE_RULES).filter(([, rule]) => !isOfPerson(rule));
const changes = routes.map(([route]) => route).filter((route) => !route.startsWith("GET "));

for (const route of [...changes, "POST /playground/chat", "POST /batch-start"]) {
	const [method = "", path = ""] = route.split(" ");
	test(`a suspended account ${ROUTES_OF_SUSPENDED.has(route) ? "may" : "may not"} ${route}`, async () => {
		const { status, body } = await ann.send(method, `/api/console${path.replace(":id", key.id)}`, { usd: "100" });
		expect([status === 403, body.error?.code === "account_suspended"]).toEqual(
			ROUTES_OF_SUSPENDED.has(route) ? [false, false] : [true, true],
		);
	});
}

test("a suspended account reads its pages and revokes its key", async () => {
	expect((await ann.get("/api/console/overview")).status).toBe(200);
	expect((await ann.get(`/api/console/keys/${key.id}`)).body.state).toBe("revoked");
});
