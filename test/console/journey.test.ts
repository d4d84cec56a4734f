import { expect, test } from "bun:test";
import { chatModel, startService, withService } from "../support/service.ts";
import { FOLD_MS } from "../support/sums.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { mailedLink, newPerson, operator, PASSWORD, PERSON_ENV, signedUp, topUp } from "./person.ts";

const upstream = withUpstream("vllm");
const service = await withService({
	models: chatModel({ url: upstream.url, dialect: "vllm" }),
	env: PERSON_ENV,
	jobs: { pace: 10 },
});

const ask = { model: "test-model", messages: [{ role: "user", content: "hello there" }], max_tokens: 20 };

test("the first sign-in with a confirmed address creates an account", async () => {
	const person = newPerson(service);
	const up = { name: "Ann", email: person.email, password: PASSWORD, next: "/overview" };
	expect((await person.send("POST", "/api/auth/sign-up/email", up)).status).toBe(200);
	expect((await person.get("/api/console/me")).status).toBe(401);
	const early = await person.send("POST", "/api/auth/sign-in/email", { email: person.email, password: PASSWORD });
	expect(early.status).toBe(401);
	expect((await person.get("/api/console/me")).status).toBe(401);

	const link = new URL(await mailedLink(person));
	expect([link.pathname, link.searchParams.get("next")]).toEqual(["/verify", "/overview"]);
	const token = link.searchParams.get("token");
	expect((await person.send("POST", "/api/auth/verify-email", { token })).body.signedIn).toBe(true);
	const me = await person.get("/api/console/me");
	expect(me.status).toBe(200);
	expect(me.body.user).toMatchObject({ email: person.email, emailVerified: true, operator: false });
	expect(me.body.account).toMatchObject({ role: "owner", state: "active", email: person.email });
	const [account] = await service.db.sql`select signed_in_at, topped_up from account where id = ${me.body.account.id}`;
	expect(account?.signed_in_at).not.toBeNull();
	expect(account?.topped_up).toBe(false);
});

test("the console leads from the first top-up to a revoked key", async () => {
	const customer = await signedUp(service);
	const boss = await operator(service);
	const empty = await customer.get("/api/console/overview");
	expect(empty.body.checklist).toEqual({ signedIn: true, toppedUp: false, keyMade: false, firstRequest: false });

	// Amounts below the minimum, above the maximum, and with fractions of a cent.
	for (const usd of [
		"0",
		"99.99",
		"99.999999999",
		"100.001",
		"1000000.01",
		"9007199.254740991",
		"-100",
		"1e3",
		"100,00",
	]) {
		const { status, body } = await customer.send("POST", "/api/console/credit/top-ups/transfer", { usd });
		expect([usd, status, body.error.param]).toEqual([usd, 400, "usd"]);
	}
	const made = await customer.send("POST", "/api/console/credit/top-ups/transfer", { usd: "150" });
	expect(made.body.topUp).toMatchObject({ state: "pending", amountNanoUsd: 150e9, method: "transfer" });
	const waiting = await boss.get("/api/console/operator/top-ups");
	expect(waiting.body.items.map((item: { id: string }) => item.id)).toContain(made.body.topUp.id);
	const path = `/api/console/operator/top-ups/${made.body.topUp.id}/confirm`;
	const confirmed = await boss.send("POST", path, { transactionReference: "BANK-1" });
	expect(confirmed.body).toMatchObject({ secondLookNeeded: false, topUp: { state: "confirmed" } });
	expect((await boss.send("POST", path, { transactionReference: "BANK-1" })).status).toBe(409);
	expect((await customer.get("/api/console/credit")).body.balance).toMatchObject({
		balanceNanoUsd: 150e9,
		availableNanoUsd: 150e9,
		heldNanoUsd: 0,
	});

	const key = await customer.send("POST", "/api/console/keys", { name: "prod", capUsd: "5", models: ["test-model"] });
	expect(key.status).toBe(200);
	expect(key.body.secret).toStartWith("sk_service_");
	expect(key.body.key).toMatchObject({ name: "prod", capNanoUsd: 5e9, models: ["test-model"], state: "active" });
	expect(JSON.stringify((await customer.get("/api/console/keys")).body)).not.toContain(key.body.secret);
	const month = new Date().getUTCMonth();
	const used = await service.post("/v1/chat/completions", key.body.secret, ask);
	expect(used.status).toBe(200);
	const requestId = used.headers.get("x-request-id");
	await used.text();

	const isSeen = async () => {
		const overview = await customer.get("/api/console/overview");
		// If a new month has begun since, the overview rightly shows no spending.
		const isSpent = overview.body.monthSpentNanoUsd > 0 || new Date().getUTCMonth() !== month;
		return overview.body.checklist.firstRequest && isSpent;
	};
	// Waits long, because open transactions of other test files delay the sums.
	await waitFor(isSeen, "the request to reach the overview", FOLD_MS);
	const log = await customer.get("/api/console/requests");
	expect(log.body.items).toHaveLength(1);
	expect(log.body.items[0]).toMatchObject({ id: requestId, model: "test-model", keyName: "prod", statusClass: "ok" });
	const detail = await customer.get(`/api/console/requests/${requestId}`);
	const { promptTokens, completionTokens } = detail.body;
	expect(promptTokens).not.toBe(completionTokens);
	expect(detail.body.lines).toEqual([
		{ name: "input", units: promptTokens, unit: "token", rate: 1_000_000 },
		{ name: "output", units: completionTokens, unit: "token", rate: 2_000_000 },
	]);
	expect(detail.body.linesTotalNanoUsd).toBe(detail.body.costNanoUsd);
	expect(detail.body.timeline.map((step: { name: string }) => step.name)).toEqual([
		"admitted",
		"first_token",
		"ended",
		"settled",
	]);
	const ledger = await customer.get("/api/console/credit/ledger");
	expect(ledger.body.items.map((row: { kind: string }) => row.kind)).toEqual(["usage", "top_up"]);
	const { balance } = (await customer.get("/api/console/credit")).body;
	expect(ledger.body.items[0].runningNanoUsd).toBe(balance.balanceNanoUsd);
	expect(balance.spentNanoUsd).toBe(detail.body.costNanoUsd);

	const revoked = await customer.send("POST", `/api/console/keys/${key.body.key.id}/revoke`);
	expect(revoked.body.fence).toMatchObject({ effective: true, pendingInstances: 0 });
	expect(revoked.body.runningRequests).toBe(0);
	expect((await service.post("/v1/chat/completions", key.body.secret, ask)).status).toBe(401);

	const audited = await boss.get(`/api/console/operator/audit?subject=${customer.accountId}`);
	const actions = audited.body.items.map((item: { action: string }) => item.action);
	expect(actions).toEqual(["key.revoke", "key.create", "topup.confirm", "topup.create"]);
	expect(JSON.stringify(audited.body)).not.toContain(key.body.secret);
}, 120_000);

test("a playground chat is billed to its key, and refused once the key is revoked", async () => {
	const customer = await signedUp(service);
	await topUp(customer, await operator(service));
	const { key } = (await customer.send("POST", "/api/console/keys", { name: "play" })).body;
	const path = `/api/console/playground/chat?key=${key.id}`;
	const answer = await customer.send("POST", path, ask);
	expect(answer.status).toBe(200);
	expect(answer.body.choices[0].message.content).toContain("hello there");
	const streamed = await customer.send("POST", path, { ...ask, stream: true });
	expect(streamed.headers.get("content-type")).toContain("text/event-stream");
	expect(streamed.body).toEndWith("data: [DONE]\n\n");
	// An error event in a stream is in the reader's language, and the delivered part is charged.
	for (const [language, said] of [
		["en", '"message":"The model server failed to respond."'],
		["de", '"message":"Der Modellserver konnte nicht antworten."'],
	] as const) {
		upstream.next(reply().text("Grüße an alle").errorEvent(2));
		const broken = await customer.send("POST", path, { ...ask, stream: true }, { "accept-language": language });
		expect(broken.body).toContain("Grüße");
		expect(broken.body).toContain(said);
		expect(broken.body.slice(broken.body.indexOf(said))).toMatch(/"usage":\{.*data: \[DONE\]\n\n$/s);
	}
	await service.settled();
	expect((await service.usage(customer.accountId)).map((row) => row.key_id)).toEqual(Array(4).fill(key.id));
	await customer.send("POST", `/api/console/keys/${key.id}/revoke`);
	const refused = await customer.send("POST", path, ask);
	expect(refused.status).toBe(401);
	expect(refused.body.error.code).toBe("api_key_revoked");
});

test("a large transfer shows bank details and needs a second operator's confirmation", async () => {
	const strict = await startService({
		models: chatModel({ url: upstream.url }),
		env: { ...PERSON_ENV, TOPUP_SECOND_LOOK_USD: "1000", TRANSFER_DETAILS: "Example Bank\\nIBAN DE00 1234" },
	});
	try {
		const customer = await signedUp(strict);
		const [first, second] = [await operator(strict), await operator(strict)];
		const expected = await customer.send("POST", "/api/console/credit/top-ups/transfer", { usd: "1000" });
		const { topUp: made, transferDetails } = expected.body;
		// Bank details are shown to signed-in customers only, together with the payment reference.
		expect(transferDetails).toBe("Example Bank\nIBAN DE00 1234");
		expect((await customer.get("/api/console/credit")).body.transferDetails).toBe(transferDetails);
		expect(JSON.stringify((await customer.get("/api/console/public/config")).body)).not.toContain("IBAN");
		const path = `/api/console/operator/top-ups/${made.id}/confirm`;
		expect((await first.send("POST", path, { transactionReference: "T-9" })).body.secondLookNeeded).toBe(true);
		expect((await first.send("POST", path, { transactionReference: "T-9" })).status).toBe(409);
		expect((await second.send("POST", path, { transactionReference: "T-9" })).status).toBe(200);
		expect((await customer.get("/api/console/credit")).body.balance.balanceNanoUsd).toBe(1000e9);
	} finally {
		await strict.stop();
	}
});
