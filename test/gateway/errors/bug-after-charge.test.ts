import { expect, spyOn, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { withService } from "../../support/service.ts";
import { deployment, withEndpoints } from "../../support/upstream-endpoints.ts";

const upstream = withEndpoints("vllm");
const service = await withService({ models: deployment({ id: "text", url: upstream.url }) });

test("a request that fails by a bug after its settlement is still charged", async () => {
	const { secret, accountId } = await service.customer();
	const { stringify } = JSON;
	const bug = spyOn(JSON, "stringify").mockImplementation(((value: unknown, ...more: []) => {
		if ((value as { object?: string } | null)?.object === "text_completion") throw new TypeError("a bug");
		return stringify(value, ...more);
	}) as typeof JSON.stringify);
	const response = await service.post("/v1/completions", secret, { model: "text", prompt: "a b c" });
	bug.mockRestore();
	expect([response.status, (await response.json()).error.code]).toEqual([500, "internal_error"]);
	await service.settled();
	const [row] = await service.usage(accountId);
	expect(Number(row?.charged_nano_usd)).toBeGreaterThan(0);
	const runbook = readFileSync(join(import.meta.dir, "../../../src/ops/runbook.md"), "utf8");
	const [, page = ""] = /### TollgateInternalErrors\n\n(.*?)\n\n/s.exec(runbook) ?? [];
	expect(page).toContain("Its usage record, by that id, says what was charged");
});
