/** All values of this request differ, so that exchanging two columns of the CSV fails the test. */
import { expect, test } from "bun:test";
import { withService } from "../support/service.ts";
import { foldAll } from "../support/sums.ts";
import { PERSON_ENV, signedUp } from "./person.ts";

const service = await withService({ env: PERSON_ENV });
const customer = await signedUp(service);
const { db } = service;
const key = (await customer.send("POST", "/api/console/keys", { name: "k" })).body.key.id as string;
const uuid = crypto.randomUUID();
const at = new Date(Date.now() - 60_000).toISOString();
await db.sql`
	insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
		reserved_nano_usd, charged_nano_usd, basis, ending, status, prompt_tokens, cached_tokens, completion_tokens,
		reasoning_tokens, admitted_at, first_token_ms, duration_ms)
	values (${uuid}, ${customer.accountId}, ${key}, 'i', 1, 'm', 'm@1', 'chat', true,
		2000000123, 1000000123, 'estimated', 'client_left', 499, 101, 11, 53, 7, ${at}, 21, 900)`;
await foldAll(db.statements);

async function firstRow(path: string): Promise<Record<string, string>> {
	const [head = "", row = ""] = (await (await customer.fetch(path)).text()).split("\r\n");
	const cells = row.split(",");
	expect(cells).toHaveLength(head.split(",").length);
	return Object.fromEntries(head.split(",").map((name, place) => [name, cells[place] ?? ""]));
}

test("the values in the request log's CSV are in the columns of their headers", async () => {
	expect(await firstRow("/api/console/requests.csv")).toEqual({
		...{ time: at, request_id: `req_${uuid.replaceAll("-", "")}`, model: "m", key_id: key, key_name: "k" },
		...{ endpoint: "chat", streamed: "true" },
		...{ prompt_tokens: "101", cached_tokens: "11", completion_tokens: "53", reasoning_tokens: "7" },
		...{ cost_usd: "1.000000123", duration_ms: "900", first_token_ms: "21" },
		...{ status: "499", ending: "client_left", basis: "estimated", error_code: "" },
		...{ available_usd: "", held_usd: "", required_usd: "", affordable_max_tokens: "", repeats: "", batch_id: "" },
	});
});

test("the values in the usage CSV are in the columns of their headers", async () => {
	expect(await firstRow("/api/console/usage.csv?group=model")).toMatchObject({
		...{ group: "m", requests: "1", prompt_tokens: "101", completion_tokens: "53", cost_usd: "1.000000123" },
	});
});
