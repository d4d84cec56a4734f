import { expect, test } from "bun:test";
import { createAttempt } from "../../src/web/token.ts";

test("a form sends one client_token until a response arrives, then a new client_token", async () => {
	const attempt = createAttempt();
	const sent: string[] = [];
	const send = (usd: string, isAnswered: boolean) =>
		attempt
			.send({ usd }, async (token) => {
				sent.push(token);
				if (!isAnswered) throw new Error("the answer was lost");
			})
			.catch(() => undefined);
	await send("100", false);
	await send("100", false);
	await send("100", true);
	await send("100", false);
	await send("200", false);
	await send("300", true);
	await send("100", true);
	await send("200", true);
	await send("100", true);
	expect(sent.map((token) => sent.indexOf(token))).toEqual([0, 0, 0, 3, 4, 5, 3, 4, 8]);
});
