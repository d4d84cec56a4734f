import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { operator, signedUp, topUp } from "../console/person.ts";
import { hasChromium } from "./chromium.ts";
import { picture, withScene } from "./stage.ts";

const MODEL = "llama-3.3-70b-instruct";

setDefaultTimeout(60_000);

const { service, open } = await withScene({ models: [MODEL] });
const catalog = await Bun.file(`${service.dataDir}/tollgate.yaml`).text();
await service.serve(catalog.replace("models:\n", "").replace("[chat, completions]", "[chat, completions, batch]"));
const customer = await signedUp(service);
await topUp(customer, await operator(service));
await customer.send("POST", "/api/console/keys", { name: "nightly" });
const tab = await open({ person: customer });
const { page } = tab;

const line = (id: string) =>
	JSON.stringify({
		custom_id: id,
		method: "POST",
		url: "/v1/chat/completions",
		body: { model: MODEL, max_tokens: 8, messages: [{ role: "user", content: id }] },
	});

describe.skipIf(!hasChromium)("a batch, in a browser", () => {
	const dialog = () => page.getByRole("dialog");
	const choose = async (text: string) => {
		const chooser = page.waitForEvent("filechooser");
		await dialog().getByLabel("File of requests").click();
		await (await chooser).setFiles({ name: "night.jsonl", mimeType: "text/plain", buffer: Buffer.from(text) });
	};

	test("a file is checked before it is sent, begun from there, followed to its end and fetched", async () => {
		await page.goto("/batches");
		await page.getByRole("button", { name: "Start a batch" }).first().click();
		await choose(`${line("a")}\n${line("a")}\n`);
		await dialog().getByText("Line 2: an earlier line has the same custom_id.").waitFor();
		expect(await dialog().getByRole("button", { name: "Start" }).isDisabled()).toBe(true);
		await choose(`${line("a")}\n${line("b")}\n`);
		await dialog().getByText("2 requests to /v1/chat/completions").waitFor();
		await picture(page, "batch-start");
		await dialog().getByRole("button", { name: "Start" }).click();
		await page.getByRole("heading", { name: "night.jsonl" }).waitFor();
		await page.getByText("Completed").waitFor();
		await page.getByText("2 of 2").waitFor();
		await picture(page, "batch");
		const file = page.waitForEvent("download");
		await page.getByRole("link", { name: "Answers" }).click();
		const path = await (await file).path();
		expect((await Bun.file(path).text()).trim().split("\n")).toHaveLength(2);
		await page.goto("/batches");
		await page.getByRole("link", { name: "night.jsonl" }).waitFor();
		await picture(page, "batches");
	});
});
