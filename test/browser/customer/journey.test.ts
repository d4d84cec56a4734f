import { describe, expect, test } from "bun:test";
import { mailedLink, newPerson, operator, PASSWORD, signedUp, topUp } from "../../console/person.ts";
import { totpCode } from "../../console/totp.ts";
import { testsMayTake } from "../../support/at-end.ts";
import { LONG } from "../../support/long-form.ts";
import { reply } from "../../support/upstream-reply.ts";
import { hasChromium } from "../chromium.ts";
import { readQrCode } from "../qr-reader.ts";
import { MODEL, picture, withScene } from "../stage.ts";
import { setView, walk } from "../windows.ts";

testsMayTake(180_000);

const OTHER_MODEL = "other-model";
/** A PNG of one red pixel. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC";

/**
 * Only in the long form. In the short form `account/card.test.ts`, `customer/keys.test.ts` and `frame/left-open.test.ts`
 * cover the main steps.
 */
const isRun = LONG && hasChromium;
async function setUp() {
	const scene = await withScene({
		models: [MODEL, OTHER_MODEL],
		modelExtra: "    input_modalities: [text, image]",
		jobs: { pace: 10 },
	});
	const { service, upstream, open } = scene;
	const catalog = await Bun.file(`${service.dataDir}/tollgate.yaml`).text();
	await service.serve(catalog.replace("models:\n", "").replaceAll("[chat, completions]", "[chat, completions, batch]"));
	upstream.always(() => reply().text("Hello from the model."));
	// `account/card.test.ts`, `operator/operator.test.ts` and `keys.test.ts` test sign-up, payment and key by hand.
	const person = await signedUp(service);
	await topUp(person, await operator(service), "250");
	await person.send("POST", "/api/console/keys", { name: "journey", capUsd: "5" });
	return { ...scene, person, customer: await open({ person }) };
}
const { service, upstream, open, person, customer } = isRun
	? await setUp()
	: ({ customer: {} } as Awaited<ReturnType<typeof setUp>>);

const line = (id: string) =>
	JSON.stringify({
		custom_id: id,
		method: "POST",
		url: "/v1/chat/completions",
		body: { model: MODEL, max_tokens: 8, messages: [{ role: "user", content: id }] },
	});

describe.skipIf(!isRun)("a customer's first day in a browser", () => {
	test("the playground compares two models, and a link restores the conversation", async () => {
		const { page } = customer;
		await walk(page, "/playground");
		await page.getByRole("combobox", { name: "Compare with" }).click();
		await page.getByRole("option", { name: OTHER_MODEL }).click();
		await page.getByRole("button", { name: "Use an example for tools" }).click();
		await page.getByRole("button", { name: "Use an example for response schema" }).click();
		const chooser = page.waitForEvent("filechooser");
		await page.getByRole("button", { name: "Add images" }).click();
		const buffer = Buffer.from(PICTURE, "base64");
		await (await chooser).setFiles([{ name: "red.png", mimeType: "image/png", buffer }]);
		await page.getByRole("img", { name: "red.png" }).waitFor();
		upstream.decide(({ messages }) =>
			(messages as { role: string }[]).at(-1)?.role === "tool"
				? reply().text('{"title": "Sunny", "tags": []}')
				: reply().toolCall("get_weather", { town: "Paris" }),
		);
		const before = upstream.requests.length;
		await page.getByLabel("Your message").fill("What is the weather?");
		await page.keyboard.press("Enter");
		const first = page.getByRole("region", { name: MODEL });
		const second = page.getByRole("region", { name: OTHER_MODEL });
		for (const thread of [first, second]) {
			await thread.getByText('get_weather({"town":"Paris"})').waitFor();
			await thread.getByLabel("Result of get_weather").fill('{"sky": "clear"}');
			await thread.getByRole("button", { name: "Send the results" }).click();
			await thread.getByText('{"title": "Sunny", "tags": []}').waitFor();
			await thread.getByText(/tokens · \$0\.0\d* total/).waitFor();
		}
		const asked = upstream.requests.slice(before).map(({ body }) => body as unknown as AskedBody);
		expect(asked).toHaveLength(4);
		for (const { messages, tools, response_format: format } of asked) {
			expect(messages[0]?.content).toEqual([
				{ type: "text", text: "What is the weather?" },
				{ type: "image_url", image_url: { url: `data:image/png;base64,${PICTURE}` } },
			]);
			expect(tools[0]?.function.name).toBe("get_weather");
			expect(format.json_schema.name).toBe("answer");
		}
		expect(asked.at(-1)?.messages.at(-1)?.content).toBe('{"sky": "clear"}');
		await picture(page, "journey-9-playground-two");

		await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
		await page.getByRole("button", { name: "Copy as link" }).click();
		await page.getByText("Copied, without the images.").waitFor();
		const link = await page.evaluate(() => navigator.clipboard.readText());
		await walk(page, "/keys");
		await page.goto(link);
		await page.getByText("Opened from a link. Nothing is sent until you send a message.").waitFor();
		for (const thread of [first, second]) await thread.getByText('{"title": "Sunny", "tags": []}').waitFor();
		expect(page.url()).not.toContain("#");
		const wide = page.viewportSize() ?? { width: 1440, height: 900 };
		await page.setViewportSize({ width: 360, height: 800 });
		await second.getByText('{"title": "Sunny", "tags": []}').waitFor();
		expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
		await picture(page, "journey-9-playground-two-narrow");
		await page.setViewportSize(wide);
		expect(upstream.requests.length).toBe(before + 4);
	});

	test("a verification link opened in another browser asks for a new password", async () => {
		const asked = newPerson(service, "bea@example.com");
		const form = { name: "Somebody", email: asked.email, password: PASSWORD, next: "/overview" };
		expect((await asked.send("POST", "/api/auth/sign-up/email", form)).status).toBe(200);
		const opened = await open({ width: 360 });
		await opened.page.goto(await mailedLink({ email: "bea@example.com" }));
		await opened.page.getByRole("button", { name: "Confirm the address" }).click();
		await opened.page.getByLabel("Name").fill("Bea Example");
		await opened.page.getByLabel("Password", { exact: true }).fill("chosen where the mail was read");
		await opened.page.getByRole("button", { name: "Confirm the address" }).click();
		await opened.page.getByRole("link", { name: "Sign in" }).click();
		await opened.page.getByLabel("Email").fill("bea@example.com");
		await opened.page.getByLabel("Password", { exact: true }).fill("chosen where the mail was read");
		await opened.page.getByRole("button", { name: "Sign in", exact: true }).click();
		await opened.page.waitForURL("**/overview");
		expect(opened.complaints).toEqual([]);
	});

	const { page } = customer;
	const dialog = () => page.getByRole("dialog");
	const choose = async (text: string) => {
		const chooser = page.waitForEvent("filechooser");
		await dialog().getByLabel("Batch file").click();
		await (await chooser).setFiles({ name: "night.jsonl", mimeType: "text/plain", buffer: Buffer.from(text) });
	};

	/** Expects the same content without overflow in the narrow layout. */
	const onPhone = async (shown: string, name: string) => {
		await setView(page, [360, "light"]);
		await page.getByText(shown).first().waitFor();
		expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), name).toBe(0);
		await picture(page, `${name}-360`);
		await setView(page, [1440, "light"]);
	};

	test("a batch file is checked, then its batch is started, followed and downloaded", async () => {
		await walk(page, "/batches");
		await page.getByRole("button", { name: "Start a batch" }).first().click();
		await choose("no request\n");
		await dialog().getByText("The file cannot be read").waitFor();
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
		await page.getByRole("link", { name: "Results" }).click();
		expect((await Bun.file(await (await file).path()).text()).trim().split("\n")).toHaveLength(2);
		await walk(page, "/batches");
		await page.getByRole("link", { name: "night.jsonl" }).waitFor();
		await picture(page, "batches");
		await onPhone("night.jsonl", "batches");
	});

	/** Drops a file on the page, as a drag from the desktop does. */
	const drop = async (text: string) => {
		const carried = await page.evaluateHandle((text) => {
			const transfer = new DataTransfer();
			transfer.items.add(new File([text], "dropped.jsonl"));
			return transfer;
		}, text);
		await page.getByRole("heading", { name: "Batches", level: 1 }).dispatchEvent("drop", { dataTransfer: carried });
	};
	test("a running batch shows its progress until its remaining lines are cancelled", async () => {
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
		await page.getByRole("button", { name: "Cancel the batch" }).click();
		await page.getByText("Cancelling").waitFor();
		// After cancellation, running requests are settled and unsent ones are cancelled.
		gate.resolve();
		await page.getByText("60 of 60").waitFor();
		await page.getByText("Cancelled", { exact: true }).waitFor();
		await picture(page, "batch-cancelled");
		const file = page.waitForEvent("download");
		await page.getByRole("link", { name: "Failed requests" }).click();
		const [first] = (await Bun.file(await (await file).path()).text()).split("\n");
		expect(JSON.parse(first ?? "").error.code).toBe("batch_cancelled");
		await page.getByRole("link", { name: "View requests" }).click();
		await page.getByText("Only requests of batch").waitFor();
		await page.getByRole("table", { name: "Requests" }).getByText("Completed").first().waitFor();
		await picture(page, "batch-requests");
		await onPhone("Only requests", "batch-requests");
	});

	test("signing in requires a code once the second factor is on", async () => {
		const { page } = customer;
		await walk(page, "/settings");
		const panel = page.locator(".panel", { hasText: "Two-factor authentication" });
		await panel.getByLabel("Your password", { exact: true }).fill(PASSWORD);
		await panel.getByRole("button", { name: "Set up" }).click();
		const code = panel.getByRole("img", { name: "The secret as a QR code" });
		await code.waitFor();
		const totpSecret = (await panel.locator(".id code").textContent()) ?? "";
		const read = new URL((await readQrCode(code)) ?? "none:");
		expect([read.protocol, read.searchParams.get("secret")]).toEqual(["otpauth:", totpSecret]);
		await picture(page, "journey-10-second-factor");
		await panel.getByLabel("Code from the app").fill(totpCode(totpSecret));
		await panel.getByRole("button", { name: "Switch on" }).click();
		await panel.getByRole("button", { name: "Switch off" }).waitFor();

		await page.getByRole("button", { name: /^You:/ }).click();
		await page.getByRole("menuitem", { name: "Sign out" }).click();
		await page.waitForURL("**/sign-in");
		expect((await person.get("/api/console/me")).status).toBe(401);
		await page.getByLabel("Email").fill(person.email);
		await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
		await page.getByRole("button", { name: "Sign in", exact: true }).click();
		await page.getByLabel("Code from your authenticator app").fill(totpCode(totpSecret, Date.now() + 30_000));
		await page.getByRole("button", { name: "Continue" }).click();
		await page.waitForURL("**/overview");
		expect(customer.complaints).toEqual([]);
	});
});

interface AskedBody {
	readonly messages: readonly { readonly content: unknown }[];
	readonly tools: readonly { readonly function: { readonly name: string } }[];
	readonly response_format: { readonly json_schema: { readonly name: string } };
}
