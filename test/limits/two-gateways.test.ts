import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { waitForAllInstances } from "../../src/cluster/wait-for-all-instances.ts";
import { updateKey } from "../../src/keys/key-admin.ts";
import { ask } from "../support/chat.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { LONG } from "../support/long-form.ts";
import { secondGateway } from "../support/second-gateway.ts";
import { withChat } from "../support/service.ts";

const { service } = await withChat();
const second = await secondGateway(service);
const settings = { requestsPerMinute: 4 };

function post(place: number, secret: string, url = place % 2 === 0 ? service.url : second.url): Promise<Response> {
	const headers = { "content-type": "application/json", authorization: `Bearer ${secret}` };
	return fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(ask()) });
}

test("a key with ten requests a minute gets ten of two gateways", async () => {
	for (const atOnce of [false, true]) {
		const { secret } = await service.customer({ settings: { requestsPerMinute: 10 } });
		const statuses: number[] = [];
		const send = async (place: number) => {
			const response = await post(place, secret);
			await response.text();
			statuses.push(response.status);
			expect(response.headers.get("x-ratelimit-limit-requests")).toBe("10");
			if (response.status === 429) expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
		};
		if (atOnce) await Promise.all(Array.from({ length: 30 }, (_, place) => send(place)));
		else for (let place = 0; place < 14; place++) await send(place);
		expect({ atOnce, served: statuses.filter((status) => status === 200).length }).toEqual({ atOnce, served: 10 });
		expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
	}
});

test("an unused share of one gateway serves the other", async () => {
	const { secret } = await service.customer({ settings: { requestsPerMinute: 10, concurrencyMax: 4 } });
	expect((await post(0, secret)).status).toBe(200);
	for (let sent = 0; sent < 9; sent++)
		expect({ sent, status: (await post(1, secret)).status }).toEqual({ sent, status: 200 });
	expect((await post(1, secret)).status).toBe(429);
});

test.skipIf(!LONG)("a stopped gateway's unused share serves the others at once", async () => {
	const leaver = await secondGateway(service);
	const { secret } = await service.customer({ settings: { requestsPerMinute: 12, concurrencyMax: 8 } });
	expect((await post(0, secret, leaver.url)).status).toBe(200);
	await leaver.stop();
	for (let sent = 1; sent < 12; sent++)
		expect({ sent, status: (await post(1, secret)).status }).toEqual({ sent, status: 200 });
	expect((await post(1, secret)).status).toBe(429);
});

test("a locked share delays its own key only, without a refusal", async () => {
	const [held, other] = [await service.customer({ settings }), await service.customer({ settings })];
	expect((await post(0, held.secret)).status).toBe(200);
	await service.db.sql.begin(async (holder) => {
		await holder`select 1 from key_share where key_id = ${held.keyId} for update`;
		const drawn = [1, 2, 3].map(() => post(0, held.secret));
		for (const place of [0, 1]) expect((await post(place, other.secret)).status).toBe(200);
		for (const answer of await Promise.all(drawn)) expect([200, 503]).toContain(answer.status);
		const { status, headers } = await post(0, held.secret);
		expect([status, headers.get("retry-after")]).toEqual([503, "1"]);
		expect(await lockWaits(service.db.sql)).toBe(0);
	});
	const statuses: number[] = [];
	for (let sent = 0; sent < 4; sent++) statuses.push((await post(0, held.secret)).status);
	expect(statuses).toEqual([200, 200, 200, 429]);
});

test("a lowered limit holds for both gateways together", async () => {
	const { keyId, secret } = await service.customer({ settings: { requestsPerMinute: 40 } });
	for (const place of [0, 1]) expect((await post(place, secret)).status).toBe(200);
	const entry = await updateKey(service.db.statements, { id: keyId }, { requestsPerMinute: 3 });
	const { effective } = await waitForAllInstances({ liveness: service.db.liveness, clock: systemClock }, entry, 20_000);
	expect(effective).toBe(true);
	// Two requests are counted already. The others are sent one by one, so that the last free place is found.
	const statuses: number[] = [];
	for (let sent = 0; sent < 8; sent++) statuses.push((await post(sent, secret)).status);
	expect(statuses.filter((status) => status === 200)).toHaveLength(1);
	expect(statuses.filter((status) => status === 429)).toHaveLength(7);
});
