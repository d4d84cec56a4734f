import { afterEach, expect, test } from "bun:test";
import { createAnswerCipher, hashClaimId } from "../../../src/gateway/idempotency/seal.ts";
import { firstAttemptUuid } from "../../../src/gateway/serve/context.ts";
import { lockWaits } from "../../support/lock-waits.ts";
import { requestsTo } from "../../support/requests.ts";
import { secondGateway } from "../../support/second-gateway.ts";
import { withService } from "../../support/service.ts";
import { withTcpProxy } from "../../support/tcp-proxy.ts";
import { deployment, withEndpoints } from "../../support/upstream-endpoints.ts";
import { waitFor } from "../../support/wait.ts";

const upstream = withEndpoints("vllm");
const service = await withService({ models: deployment({ id: "text", url: upstream.url, parameters: "max_tokens" }) });
const direct = new URL(service.db.url);
const proxy = withTcpProxy({ hostname: direct.hostname, port: Number(direct.port) });
const second = await secondGateway(service, Object.assign(new URL(direct), { port: `${proxy.port}` }).href);

afterEach(async () => {
	await service.db.sql`delete from idempotency_claim`;
	await service.db.sql`delete from instance_beat where id like 'gone%'`;
});

const BODY = { model: "text", prompt: "a b c" };

function complete(place: number, secret: string, key: string | null, more: object = {}): Promise<Response> {
	const headers = key === null ? {} : { "idempotency-key": key };
	const { post } = requestsTo(place % 2 === 0 ? service.url : second.url);
	return post("/v1/completions", secret, { ...BODY, ...more }, { headers });
}

async function charges(accountId: string): Promise<number> {
	await service.settled();
	await waitFor(() => second.instanceLease.present()?.view().queued === 0, "the second one's settlements");
	return (await service.usage(accountId)).length;
}

async function left(
	customer: { secret: string; keyId: string; accountId: string },
	header: string,
	state: "live" | "dead" | "left",
): Promise<string> {
	const uuid = firstAttemptUuid();
	const id = hashClaimId(customer.keyId, header);
	const seal = await createAnswerCipher(customer.secret, header, id);
	const proof = seal.proof("/v1/completions", new TextEncoder().encode(JSON.stringify(BODY)));
	const gone = `gone-${uuid}`;
	await service.db
		.sql`insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until) values (${gone}, 1, 1, ${state}, 30000, now() - interval '1 minute')`;
	await service.db.sql`
		insert into idempotency_claim (id, account_id, proof, request_id, instance_id, epoch, expires_at)
		values (${id}, ${customer.accountId}, ${proof}, ${uuid}::uuid, ${gone}, 1, now() + interval '1 hour')`;
	return uuid;
}

test.each([false, true])(
	"eight repetitions of a request at two gateways cause one model call (stream %p)",
	async (stream) => {
		const { secret, accountId } = await service.customer();
		const before = upstream.requests.length;
		const answers = await Promise.all(
			Array.from({ length: 8 }, async (_, place) => (await complete(place, secret, "one", { stream })).text()),
		);
		expect(new Set(answers).size).toBe(1);
		expect(answers[0]).toContain("usage");
		expect(upstream.requests.length).toBe(before + 1);
		expect(await charges(accountId)).toBe(1);
	},
);

test.each([false, true])(
	"a gateway returns another gateway's answer to the same API key only (stream %p)",
	async (stream) => {
		const { secret, accountId } = await service.customer();
		const first = await complete(0, secret, "key", { stream });
		const text = await first.text();
		const again = await complete(1, secret, "key", { stream });
		expect(again.headers.get("idempotent-replayed")).toBe("true");
		for (const name of ["x-request-id", "content-type"]) expect(again.headers.get(name)).toBe(first.headers.get(name));
		expect(await again.text()).toBe(text);
		const mismatch = await complete(1, secret, "key", { stream, prompt: "z" });
		expect([mismatch.status, (await mismatch.json()).error.code]).toEqual([422, "idempotency_mismatch"]);
		for (const other of [await service.key(accountId), await service.customer()]) {
			const answer = await complete(1, other.secret, "key", { stream });
			expect([answer.status, answer.headers.get("idempotent-replayed")]).toEqual([200, null]);
			await answer.text();
		}
		expect(await charges(accountId)).toBe(2);
	},
);

test("stored rows of an Idempotency-Key reveal no key, prompt or answer", async () => {
	const { secret } = await service.customer();
	const answer = await (await complete(0, secret, "order-4711")).json();
	await waitFor(async () => (await stored())[0]?.state === "answered", "the answer to be kept");
	const [row] = await stored();
	const readable = `${JSON.stringify(row)} ${Buffer.from(row?.answer).toString("latin1")}`;
	for (const secretText of [secret, "order-4711", "a b c", answer.choices[0].text, answer.id, "choices"])
		expect(readable).not.toContain(secretText);
	const digest = new Bun.CryptoHasher("sha256").update("/v1/completions\n").update(JSON.stringify(BODY));
	expect(readable).not.toContain(digest.digest("base64"));
});
const stored = () => service.db.sql`select * from idempotency_claim`;

test("a claim of a dead instance that sent nothing is free once the instance has left", async () => {
	const customer = await service.customer();
	const before = upstream.requests.length;
	await left(customer, "early", "dead");
	const both = [complete(0, customer.secret, "early"), complete(1, customer.secret, "early")];
	await Bun.sleep(300);
	expect(upstream.requests.length).toBe(before);
	await service.db.sql`update instance_beat set state = 'left' where id like 'gone%'`;
	const texts = await Promise.all(both.map(async (one) => (await one).text()));
	expect(texts[0]).toBe(texts[1] as string);
	expect(upstream.requests.length).toBe(before + 1);
	expect(await charges(customer.accountId)).toBe(1);
});

test.each([0, 2])("a repeated request gets the amount that a dead instance charged for attempt %p", async (attempt) => {
	const customer = await service.customer();
	const uuid = await left(customer, "late", "left");
	const sent = `${uuid.slice(0, -2)}0${attempt}`;
	await service.db.sql`
		insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
			reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at)
		values (${sent}::uuid, ${customer.accountId}, ${customer.keyId}, ${`gone-${uuid}`}, 1, 'text', 'card', 'completions', false, 9000, 5000, 'recovered', 'crashed', 500, now())`;
	const before = upstream.requests.length;
	for (const place of [0, 1]) {
		const refused = await complete(place, customer.secret, "late");
		expect(refused.status).toBe(409);
		expect(refused.headers.get("x-should-retry")).toBe("false");
		const { error } = await refused.json();
		expect(error.code).toBe("conflict");
		expect(error.message).toContain("USD 0.000005.");
		expect(error.message).toContain(`req_${uuid.replaceAll("-", "")}`);
	}
	expect(upstream.requests.length).toBe(before);
});

test("without Postgres a request with an Idempotency-Key gets a retryable 503", async () => {
	const { secret } = await service.customer();
	await (await complete(0, secret, null)).text();
	await service.db.sql`alter table idempotency_claim rename to idempotency_claim_away`;
	try {
		const refused = await complete(0, secret, "away");
		expect(refused.status).toBe(503);
		expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
		expect((await refused.json()).error.message).not.toContain("idempotency_claim");
		for (const place of [0, 1]) expect((await complete(place, secret, null)).status).toBe(200);
	} finally {
		await service.db.sql`alter table idempotency_claim_away rename to idempotency_claim`;
	}
	expect((await complete(0, secret, "away")).status).toBe(200);
});

test("a claim whose reply was lost does not block a repetition of the request", async () => {
	const { secret, accountId } = await service.customer();
	await (await complete(1, secret, null)).text();
	const held = await service.db.sql.begin(async (sql) => {
		await sql`lock table idempotency_claim in exclusive mode`;
		const answer = complete(1, secret, "lost");
		await waitFor(async () => (await lockWaits(service.db.sql)) > 0, "the claim to wait");
		proxy.freeze();
		return { answer };
	});
	await waitFor(async () => (await stored()).length === 1, "the claim to be made");
	proxy.thaw(false);
	expect((await held.answer).status).toBe(503);
	expect((await complete(0, secret, "lost")).status).toBe(200);
	expect(await charges(accountId)).toBe(2);
});

test("a request refused before it is sent leaves its Idempotency-Key unclaimed", async () => {
	const { secret } = await service.customer();
	expect((await complete(0, secret, "no", { model: "unknown" })).status).toBe(404);
	await waitFor(async () => (await stored()).length === 0, "the claim to be released");
	expect((await complete(1, secret, "no")).status).toBe(200);
});
