import { describe, expect, test } from "bun:test";
import { operator, PASSWORD, signedUp, topUp } from "../../console/person.ts";
import { totpCode } from "../../console/totp.ts";
import { testsMayTake } from "../../support/at-end.ts";
import { LONG } from "../../support/long-form.ts";
import { reply } from "../../support/upstream-reply.ts";
import { hasChromium } from "../chromium.ts";
import { readQrCode } from "../qr-reader.ts";
import { MODEL, picture, withScene } from "../stage.ts";
import { seenAs, walk } from "../windows.ts";

testsMayTake(180_000);

const OTHER_MODEL = "other-model";
/** One red point. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC";

/**
 * What no other test says of these pages, in the long form. The first minutes are in `account/card.test.ts`, keys in `keys.test.ts`,
 * the start of a batch in `frame/left-open.test.ts`, notices and sums in `console/`.
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
	const person = await signedUp(service);
	await topUp(person, await operator(service), "250");
	await person.send("POST", "/api/console/keys", { name: "journey", capUsd: "5" });
	return { ...scene, person, customer: await open({ person }) };
}
const { upstream, person, customer } = isRun ? await setUp() : ({ customer: {} } as Awaited<ReturnType<typeof setUp>>);

const line = (id: string) =>
	JSON.stringify({
		custom_id: id,
		method: "POST",
		url: "/v1/chat/completions",
		body: { model: MODEL, max_tokens: 8, messages: [{ role: "user", content: id }] },
	});

describe.skipIf(!isRun)("a customer, in a browser", () => {
	test("the playground compares two models, answers their tool calls, makes a link", async () => {
		const { page } = customer;
		await walk(page, "/playground");
		await page.getByRole("combobox", { name: "Compare with" }).click();
		await page.getByRole("option", { name: OTHER_MODEL }).click();
		await page.getByRole("button", { name: "Take an example for tools" }).click();
		await page.getByRole("button", { name: "Take an example for json schema of the answer" }).click();
		const chooser = page.waitForEvent("filechooser");
		await page.getByRole("button", { name: "Add pictures" }).click();
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
			await thread.getByLabel("What get_weather answers").fill('{"sky": "clear"}');
			await thread.getByRole("button", { name: "Give the answers" }).click();
			await thread.getByText('{"title": "Sunny", "tags": []}').waitFor();
			await thread.getByText(/tokens · USD 0\.0\d* together/).waitFor();
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
		await page.getByRole("button", { name: "Hide the code" }).click();
		await picture(page, "journey-9-playground-two");

		await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
		await page.getByRole("button", { name: "Copy as link" }).click();
		await page.getByText("Copied, without the pictures.").waitFor();
		const link = await page.evaluate(() => navigator.clipboard.readText());
		await walk(page, "/keys");
		await page.goto(link);
		await page.getByText("From a link. Nothing is sent before you send a message.").waitFor();
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

	const { page } = customer;
	const dialog = () => page.getByRole("dialog");

	/** On a telephone: the same page, nothing of it beyond the edge. */
	const onPhone = async (shown: string, name: string) => {
		await seenAs(page, [360, "light"]);
		await page.getByText(shown).first().waitFor();
		expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), name).toBe(0);
		await picture(page, `${name}-360`);
		await seenAs(page, [1440, "light"]);
	};

	/** As somebody drops a file from the desktop. */
	const drop = async (text: string) => {
		const carried = await page.evaluateHandle((text) => {
			const transfer = new DataTransfer();
			transfer.items.add(new File([text], "dropped.jsonl"));
			return transfer;
		}, text);
		await page.getByRole("heading", { name: "Batches", level: 1 }).dispatchEvent("drop", { dataTransfer: carried });
	};
	test("a running batch shows its progress, is cancelled, gives its errors", async () => {
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
	});

	test("a second factor is set up by QR code, then asked for at sign-in", async () => {
		const { page } = customer;
		await walk(page, "/settings");
		const panel = page.locator(".panel", { hasText: "Second factor" });
		await panel.getByLabel("Your password", { exact: true }).fill(PASSWORD);
		await panel.getByRole("button", { name: "Set up" }).click();
		const code = panel.getByRole("img", { name: "The secret as a QR code" });
		await code.waitFor();
		const totpSecret = (await panel.locator(".id code").textContent()) ?? "";
		const read = new URL((await readQrCode(code)) ?? "none:");
		expect([read.protocol, read.searchParams.get("secret")]).toEqual(["otpauth:", totpSecret]);
		await picture(page, "journey-10-second-factor");
		await panel.getByLabel("A code from the app").fill(totpCode(totpSecret));
		await panel.getByRole("button", { name: "Switch on" }).click();
		await panel.getByRole("button", { name: "Switch off" }).waitFor();

		await page.getByRole("button", { name: /^You:/ }).click();
		await page.getByRole("menuitem", { name: "Sign out" }).click();
		await page.waitForURL("**/sign-in");
		expect((await person.get("/api/console/me")).status).toBe(401);
		await page.getByLabel("Email").fill(person.email);
		await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
		await page.getByRole("button", { name: "Sign in", exact: true }).click();
		await page.getByLabel("Code of your authenticator app").fill(totpCode(totpSecret, Date.now() + 30_000));
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
