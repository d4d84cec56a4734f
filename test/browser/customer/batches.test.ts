import { describe, expect, setDefaultTimeout, test } from "bun:test";
import OpenAI from "openai";
import { confirmTopUp, createTopUp } from "../../../src/billing/top-ups.ts";
import { nanoUsd } from "../../../src/money/nano-usd.ts";
import { newMail } from "../../console/mailbox.ts";
import { operator, signedUp, topUp } from "../../console/person.ts";
import { untilEnd } from "../../support/at-end.ts";
import { reply } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";
import { hasChromium } from "../chromium.ts";
import { picture, withScene } from "../stage.ts";
import { seenAs, walk } from "../windows.ts";

const MODEL = "llama-3.3-70b-instruct";

setDefaultTimeout(180_000);

const { service, upstream, open } = await withScene({ models: [MODEL], jobs: { pace: 10 } });
const catalog = await Bun.file(`${service.dataDir}/tollgate.yaml`).text();
await service.serve(catalog.replace("models:\n", "").replace("[chat, completions]", "[chat, completions, batch]"));
const customer = await signedUp(service);
await topUp(customer, await operator(service));
await customer.send("POST", "/api/console/keys", { name: "nightly" });
const tab = await open({ person: customer });
const { page } = tab;

/** The customer's own server. */
const called: { readonly headers: Headers; readonly body: string }[] = [];
const receiver = untilEnd(
	Bun.serve({
		port: 0,
		hostname: "127.0.0.1",
		async fetch(request) {
			called.push({ headers: request.headers, body: await request.text() });
			return new Response();
		},
	}),
);

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

	/** On a telephone: the same page, nothing of it beyond the edge. */
	const onPhone = async (shown: string, name: string) => {
		await seenAs(page, [360, "light"]);
		await page.getByText(shown).first().waitFor();
		expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), name).toBe(0);
		await picture(page, `${name}-360`);
		await seenAs(page, [1440, "light"]);
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
		await walk(page, "/batches");
		await page.getByRole("link", { name: "night.jsonl" }).waitFor();
		await picture(page, "batches");
		await onPhone("night.jsonl", "batches");
	});

	/** As somebody drops a file from the desktop. */
	const drop = async (text: string) => {
		const carried = await page.evaluateHandle((text) => {
			const transfer = new DataTransfer();
			transfer.items.add(new File([text], "dropped.jsonl"));
			return transfer;
		}, text);
		await page.getByRole("heading", { name: "Batches", level: 1 }).dispatchEvent("drop", { dataTransfer: carried });
	};
	test("who wants to hear of its end is mailed, and his server called with a signature that it can check", async () => {
		await walk(page, "/settings");
		const panel = page.getByRole("region", { name: "Notices" });
		await panel.getByLabel("Webhook").fill("http://service.example/hook");
		await panel.getByRole("button", { name: "Save" }).click();
		await panel.getByText("The address must begin with https://").waitFor();
		await panel.getByLabel("Webhook").fill(`http://127.0.0.1:${receiver.port}/hook`);
		await panel.getByLabel("Mail when a batch is over").click();
		await page.getByRole("option", { name: "Who made the batch's key" }).click();
		await panel.getByRole("checkbox", { name: "A confirmed top-up" }).check();
		await panel.getByRole("button", { name: "Save" }).click();
		const secret = (await panel.locator("code").textContent()) ?? "";
		await picture(page, "batch-notices-secret");
		await panel.getByRole("button", { name: "I have stored it" }).click();
		await panel.getByRole("button", { name: "New secret" }).waitFor();

		await walk(page, "/batches");
		await drop(`${line("a")}\n{"custom_id": "b"}\n`);
		await dialog().getByText("Line 2: it has no body.").waitFor();
		expect(await dialog().getByRole("button", { name: "Start" }).isDisabled()).toBe(true);
		await dialog().getByRole("button", { name: "Cancel" }).click();
		await drop(`${line("a")}\n`);
		await dialog().getByText("1 request to /v1/chat/completions").waitFor();
		await dialog().getByRole("button", { name: "Start" }).click();
		await page.getByRole("heading", { name: "dropped.jsonl" }).waitFor();
		await page.getByText("Completed").waitFor();
		const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";

		expect((await newMail(customer.email)).text).toContain(`The batch ${id} is completed.`);
		await waitFor(() => called.length > 0, "the webhook to be called", 30_000);
		const client = new OpenAI({ apiKey: "none", webhookSecret: secret });
		const [{ body, headers } = { body: "", headers: new Headers() }] = called;
		expect(await client.webhooks.unwrap(body, headers)).toMatchObject({ type: "batch.completed", data: { id } });
		const told = page.getByRole("table", { name: "What was told lately" });
		await page.goto("/settings");
		await told.getByText("HTTP 200").waitFor();
		await told.getByText("taken").waitFor();
		const { accountId } = customer;
		const money = {
			accountId,
			amountNanoUsd: nanoUsd(100_000_000_000),
			method: "transfer" as const,
			reference: "told",
		};
		const { id: topUpId } = await createTopUp(service.db.statements, money);
		await confirmTopUp(service.db.statements, topUpId, "test");
		await told.getByRole("button", { name: "Send again" }).click();
		await waitFor(() => called.length >= 3, "the call to be made again, and that of the top-up", 30_000);
		const again = await Promise.all(called.slice(1).map(({ body, headers }) => client.webhooks.unwrap(body, headers)));
		expect(called.filter((one) => one.body === body)).toHaveLength(2);
		expect(again as unknown[]).toContainEqual(
			expect.objectContaining({
				type: "top_up.confirmed",
				data: { id: topUpId, amount_usd: "100.00", method: "transfer" },
			}),
		);
		expect((await newMail(customer.email)).text).toContain("A top-up of USD 100.00 is confirmed");
		await page.reload();
		await told.getByText("Top-up").first().waitFor();
		await picture(page, "batch-notices");
		await onPhone("HTTP 200", "batch-notices");
	});

	test("its progress moves by itself; the rest is ended, and what came of it is fetched", async () => {
		const gate = Promise.withResolvers<void>();
		for (let n = 0; n < 10; n++) upstream.next(reply().text("soon"));
		upstream.always(() => reply().text("late").behind(gate.promise));
		await walk(page, "/batches");
		await drop(Array.from({ length: 60 }, (_, n) => line(`line ${n}`)).join("\n"));
		await dialog().getByRole("button", { name: "Start" }).click();
		await page.getByText("10 of 60").waitFor();
		expect(await page.getByRole("progressbar").getAttribute("aria-valuenow")).toBe("16");
		await picture(page, "batch-running");
		await onPhone("10 of 60", "batch-running");
		await page.getByRole("button", { name: "Cancel the rest" }).click();
		await page.getByText("Cancelling").waitFor();
		// What is under way settles; what was not sent is cancelled.
		gate.resolve();
		await page.getByText("60 of 60").waitFor();
		await page.getByText("Cancelled", { exact: true }).waitFor();
		await picture(page, "batch-cancelled");
		const file = page.waitForEvent("download");
		await page.getByRole("link", { name: "What failed" }).click();
		const [first] = (await Bun.file(await (await file).path()).text()).split("\n");
		expect(JSON.parse(first ?? "").error.code).toBe("batch_cancelled");
		await page.getByRole("link", { name: "Its requests" }).click();
		await page.getByText("Only lines of the batch").waitFor();
		await page.getByRole("table", { name: "Requests" }).getByText("Answered").first().waitFor();
		await picture(page, "batch-requests");
		await onPhone("Only lines", "batch-requests");
		expect(tab.complaints).toEqual([]);
	});
});
