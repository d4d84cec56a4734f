import { describe, expect, setDefaultTimeout, test } from "bun:test";
import OpenAI from "openai";
import { mailedLink, newPerson, operator, PASSWORD, signedUp, topUp } from "../../console/person.ts";
import { totpCode } from "../../console/totp.ts";
import { foldAll } from "../../support/sums.ts";
import { reply } from "../../support/upstream-reply.ts";
import { hasChromium } from "../chromium.ts";
import { readQrCode } from "../qr-reader.ts";
import { MODEL, picture, withScene } from "../stage.ts";
import { walk } from "../windows.ts";

setDefaultTimeout(180_000);

const OTHER_MODEL = "other-model";
/** One red point. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC";

const { service, upstream, open } = await withScene({
	models: [MODEL, OTHER_MODEL],
	modelExtra: "    input_modalities: [text, image]",
});
upstream.always(() => reply().text("Hello from the model."));
// How he signs up, pays and makes a key by hand is told by `account/card.test.ts`, `operator/operator.test.ts` and `keys.test.ts`.
const person = await signedUp(service);
await topUp(person, await operator(service), "250");
const { secret } = (await person.send("POST", "/api/console/keys", { name: "journey", capUsd: "5" })).body;
const customer = await open({ person });
/** Another browser. */
const phone = await open({ width: 360 });

describe.skipIf(!hasChromium)("a customer's first day, from the first request to a second factor, in a browser", () => {
	test("the key works with the OpenAI SDK, the overview turns green by itself and the log has the request", async () => {
		const { page } = customer;
		await walk(page, "/overview");
		await page.getByText("First request seen").waitFor();
		await page.getByRole("tab", { name: "Python" }).waitFor();
		await picture(page, "journey-6-snippet");
		const client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: secret });
		const { data: answer, request_id: requestId } = await client.chat.completions
			.create({
				model: MODEL,
				messages: [{ role: "user", content: "Hello to you, and to the server!" }],
				max_tokens: 64,
			})
			.withResponse();
		expect(answer.choices[0]?.message.content).toBe("Hello from the model.");
		expect(answer.usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 4 });
		await page.getByText("All set").waitFor();
		// Sent together: the second counts within a second of the first, and a busy page is slow to say that it heard of one.
		await Promise.all(["g", "r"].map((key) => page.keyboard.press(key)));
		await page.waitForURL("**/requests");
		await page.locator("table a").first().click();
		await page.getByText("Cost, line by line").waitFor();
		expect(page.url()).toEndWith(`/requests/${requestId}`);
		const lines = page.getByRole("table", { name: "Cost, line by line" }).locator("tbody tr");
		expect((await lines.allInnerTexts()).map((line) => line.trim().split(/\s*\t\s*/))).toEqual([
			["Input", "10", "$1.00 per million tokens", "USD 0.00001"],
			["Output", "4", "$2.00 per million tokens", "USD 0.000008"],
		]);
		await picture(page, "journey-7-request");
		await page.getByRole("link", { name: MODEL, exact: true }).click();
		await page.getByText("Rates in USD").waitFor();
		const rates = ["Input", "Cached input", "Output"].map((name) =>
			page
				.locator("dl > div", { hasText: new RegExp(`^${name}, per million tokens`) })
				.locator("dd")
				.textContent(),
		);
		expect(await Promise.all(rates)).toEqual(["$1.00", "$0.50", "$2.00"]);
		// Transactions of other files' databases hold the sums back.
		await foldAll(service.db.statements);
		await walk(page, "/usage");
		const sums = ["Cost", "Requests", "Prompt tokens", "Completion tokens"].map((name) =>
			page
				.locator(".stat", { has: page.getByText(name, { exact: true }) })
				.locator(".stat-value")
				.textContent(),
		);
		expect(await Promise.all(sums)).toEqual(["$0.000018", "1", "10", "4"]);
		const cells = ["Requests", "Prompt", "Completion"].map((name) =>
			page.locator(`td[data-label="${name}"]`).first().textContent(),
		);
		expect(await Promise.all(cells)).toEqual(["1", "10", "4"]);
	});

	test("the playground streams an answer and says what it cost", async () => {
		const { page } = customer;
		await walk(page, "/playground");
		await page.getByLabel("Your message").fill("Say hello");
		await page.getByRole("button", { name: "Send" }).and(page.locator(":enabled")).waitFor();
		await page.keyboard.press("Enter");
		await page.getByText("Hello from the model.").waitFor();
		await page.getByText(/^USD 0\.0/).waitFor();
		await page.getByRole("button", { name: "Show as code" }).click();
		await page.getByRole("tab", { name: "TypeScript" }).click();
		await page.getByText('import OpenAI from "openai"').waitFor();
		await picture(page, "journey-8-playground");
	});

	test("two models answer the same question, with a picture; a call is answered by hand; a link holds it all", async () => {
		const { page } = customer;
		await page.getByRole("button", { name: "Clear" }).click();
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

	test("a link that is opened in another browser than the one that signed up asks for a password there", async () => {
		const asked = newPerson(service, "bea@example.com");
		const form = { name: "Somebody", email: asked.email, password: PASSWORD, next: "/overview" };
		expect((await asked.send("POST", "/api/auth/sign-up/email", form)).status).toBe(200);
		const opened = phone;
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
	});

	test("signing out leaves nothing behind; the pages ask to sign in again and lead back", async () => {
		const { page } = customer;
		await walk(page, "/credit");
		await page.getByRole("button", { name: /^You:/ }).click();
		await page.getByRole("menuitem", { name: "Sign out" }).click();
		await page.waitForURL("**/sign-in");
		await page.goto("/credit");
		await page.waitForURL("**/sign-in?next=*");
		await page.getByLabel("Email").fill(person.email);
		await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
		await page.getByRole("button", { name: "Sign in", exact: true }).click();
		await page.waitForURL("**/credit");
		await page.getByRole("heading", { name: "Ledger" }).waitFor();
	});

	test("a second factor is set up with a first code, and asked for at the next sign-in", async () => {
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

		await phone.context.clearCookies();
		await phone.page.goto("/sign-in");
		await phone.page.getByLabel("Email").fill(person.email);
		await phone.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
		await phone.page.getByRole("button", { name: "Sign in", exact: true }).click();
		await phone.page.getByLabel("Code of your authenticator app").fill(totpCode(totpSecret, Date.now() + 30_000));
		await phone.page.getByRole("button", { name: "Continue" }).click();
		await phone.page.waitForURL("**/overview");
		expect(phone.complaints).toEqual([]);
		expect(customer.complaints).toEqual([]);
	});
});

interface AskedBody {
	readonly messages: readonly { readonly content: unknown }[];
	readonly tools: readonly { readonly function: { readonly name: string } }[];
	readonly response_format: { readonly json_schema: { readonly name: string } };
}
