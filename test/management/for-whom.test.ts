/**
 * A management key acts for the operator who created it. It can neither confirm that operator's adjustments nor change
 * an account that this operator may not change.
 */
import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { newManagementSecret } from "../../src/keys/management-secret.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { createManagement } from "../../src/management/management.ts";
import { operator, PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { withChat } from "../support/service.ts";
import { type ManagementAnswer, managementCall } from "./management-client.ts";

const { service } = await withChat({ dialect: "vllm", env: { ...PERSON_ENV, TOPUP_SECOND_LOOK_USD: "1000" } });
const [ann, ben] = [await operator(service), await operator(service)];
const PATH = "/api/console/operator/management-keys";

async function keyOf(person: Person, scopes: readonly string[]): Promise<{ id: string; secret: string }> {
	const made = await person.send("POST", PATH, { name: "of a script", scopes });
	expect(made.status).toBe(200);
	return made.body;
}

let tokens = 0;
function send(secret: string, method: string, path: string, body: object): Promise<ManagementAnswer> {
	tokens += 1;
	const headers = { "content-type": "application/json", "idempotency-key": `token-${tokens}` };
	return managementCall(service, secret, method, path, { body: JSON.stringify(body), headers });
}

test("an operator's key is listed without its secret; its changes are audited", async () => {
	const { id, secret } = await keyOf(ann, ["catalog:read", "accounts:read"]);
	expect((await managementCall(service, secret, "GET", "/self")).body).toMatchObject({
		id,
		name: "of a script",
		scopes: ["accounts:read", "catalog:read"],
	});
	const { items } = (await ben.get(PATH)).body;
	expect(items[0]).toMatchObject({ id, state: "active", madeByEmail: ann.email, lastFour: secret.slice(-4) });
	expect(JSON.stringify(items)).not.toContain(secret.slice(20));
	expect(items[0]).not.toHaveProperty("digest");
	expect((await ben.send("POST", `${PATH}/${id}/revoke`)).status).toBe(200);
	expect((await managementCall(service, secret, "GET", "/self")).body.error.code).toBe("api_key_revoked");
	const audit = (await ann.get(`/api/console/operator/audit?subject=${id}`)).body.items;
	expect(audit.map((row: { action: string; actorEmail: string }) => [row.action, row.actorEmail])).toEqual([
		["management_key.revoke", ben.email],
		["management_key.create", ann.email],
	]);
	for (const body of [{ name: "x", scopes: ["everything"] }, { name: "x", scopes: [] }, { scopes: ["keys:read"] }])
		expect((await ann.send("POST", PATH, body)).status).toBe(400);
});

test("a management key books for its creator, who cannot confirm the key's bookings", async () => {
	const accountId = await service.account({ credit: "100" });
	const { id, secret } = await keyOf(ann, ["credit:write", "credit:read"]);
	const adjust = (usd: string) =>
		send(secret, "POST", "/credit-adjustments", { account_id: accountId, amount_usd: usd, reason: "a test" });
	expect((await adjust("600")).body).toMatchObject({ state: "booked", asked_by: ann.email });
	const second = (await adjust("600")).body;
	expect(second.state).toBe("pending");
	const byHand = { usd: "600", reason: "by hand", idempotencyKey: crypto.randomUUID() };
	const third = await ann.send("POST", `/api/console/operator/accounts/${accountId}/adjust`, byHand);
	expect(third.body.secondLookNeeded).toBe(true);
	const confirm = (person: Person) => person.send("POST", `/api/console/operator/adjustments/${second.id}/confirm`);
	expect((await confirm(ann)).status).toBe(409);
	expect((await confirm(ben)).status).toBe(200);
	expect((await managementCall(service, secret, "GET", `/credit-adjustments/${second.id}`)).body.state).toBe("booked");
	const [asked] = (await ann.get(`/api/console/operator/audit?actor=${id}&action=adjustment.ask`)).body.items;
	expect(asked).toMatchObject({ actor: id, accountId });
	for (const usd of ["0", "100000.01", "-100000.01"]) {
		const { status, body } = await adjust(usd);
		expect([usd, status, body.error.param]).toEqual([usd, 400, "amount_usd"]);
	}
	expect((await adjust("-99000")).status).toBe(200);
	expect((await adjust("-900")).body).toMatchObject({ state: "pending" });
});

test("a management key cannot change an account of the key's creator", async () => {
	const own = (await ann.get("/api/console/me")).body.account.id;
	const { secret } = await keyOf(ann, ["credit:write", "accounts:write"]);
	const adjustment = { account_id: own, amount_usd: "5", reason: "for myself" };
	expect((await send(secret, "POST", "/credit-adjustments", adjustment)).status).toBe(403);
	for (const state of ["suspended", "active"])
		expect((await send(secret, "PATCH", `/accounts/${own}`, { state, reason: "a test" })).status).toBe(403);
	const { secret: another } = await keyOf(ben, ["accounts:write"]);
	const suspended = await send(another, "PATCH", `/accounts/${own}`, { state: "suspended", reason: "a test" });
	expect(suspended.body).toMatchObject({ state: "suspended", in_force: { effective: true } });
	expect((await send(another, "PATCH", `/accounts/${own}`, { state: "active" })).body.error.param).toBe("reason");
	const lifted = await send(another, "PATCH", `/accounts/${own}`, {
		state: "active",
		reason: "a test",
		name: "Lifted",
	});
	expect(lifted.body).toMatchObject({ state: "active", name: "Lifted" });
});

test("a customer's session opens neither the management page nor the interface", async () => {
	const customer = await signedUp(service);
	expect((await customer.get(PATH)).status).toBe(403);
	expect((await customer.get("/v1/management/accounts")).body.error.code).toBe("missing_api_key");
});

test("many management requests of one network leave capacity to other networks", async () => {
	const hanging = { statements: () => new Promise(() => {}), clock: systemClock, log: silentLog };
	const keyMaker = { digest: createDigest("p".repeat(40)), serviceName: "tollgate" };
	const parts = { ...hanging, keyMaker } as unknown as Parameters<typeof createManagement>[0];
	const management = createManagement(parts, { mailOwners: async () => true });
	const headers = { authorization: `Bearer ${newManagementSecret("tollgate")}` };
	const send = (address: string) => {
		const request = new Request("http://service/v1/management/self", { headers });
		const status = management({ request, address, setIdleTimeout() {} }).then(({ status }) => status);
		return Promise.race([status, Bun.sleep(0).then(() => "running")]);
	};
	const flood = await Promise.all(Array.from({ length: 193 }, () => send("192.0.2.1")));
	expect([flood[191], flood[192]]).toEqual(["running", 503]);
	expect(await send("198.51.100.1")).toBe("running");
});
