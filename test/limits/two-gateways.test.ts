import { expect, test } from "bun:test";
import { ask, postJson } from "../support/chat.ts";
import { secondGateway } from "../support/second-gateway.ts";
import { withChat } from "../support/service.ts";

const { service } = await withChat();
const second = await secondGateway(service);

const post = (place: number, secret: string) =>
	postJson(`${place % 2 === 0 ? service.url : second.url}/v1/chat/completions`, secret, ask());

test("two gateways admit ten requests of a key with ten requests a minute", async () => {
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
