import { expect, test } from "bun:test";
import { ask } from "../support/chat.ts";
import { openRaw, rawPost } from "../support/raw-http.ts";
import { withConsole } from "./product.ts";

const product = await withConsole();
/** The runtime checks idle connections each 4 s. */
const SHORT_MS_MAX = 20_000;
const get = (path: string, headers = "") => `GET ${path} HTTP/1.1\r\nhost: test.example\r\n${headers}\r\n`;

test(
	"only connections of accepted keys stay open without requests",
	async () => {
		const payer = await product.secret("100");
		const kept = await openRaw(product.url, rawPost("/v1/chat/completions", payer, ask()));
		await kept.until("chat.completion");
		const anonymous = await Promise.all(
			[get("/livez"), get("/"), get("/v1/nothing"), get("/v1/models", "authorization: Bearer x\r\n")].map((request) =>
				openRaw(product.url, request),
			),
		);
		for (const client of anonymous) expect(await client.ended(SHORT_MS_MAX)).toStartWith("HTTP/1.1 ");
		kept.write(get("/livez"));
		await kept.until("ok\n");
	},
	2 * SHORT_MS_MAX,
);
