import { describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { TOOLS } from "../../../src/web/snippets/tools.ts";
import { operator, signedUp, topUp } from "../../console/person.ts";
import { factsFor } from "../../snippets/customer.ts";
import { testsMayTake } from "../../support/at-end.ts";
import { LONG } from "../../support/long-form.ts";
import { waitFor } from "../../support/wait.ts";
import { hasChromium, storeSecret } from "../chromium.ts";
import { callWith, picture, withScene } from "../stage.ts";
import { walk } from "../windows.ts";

const LARGE = "llama-3.3-70b-instruct";
const SMALL = "mistral-small-3.2";
const HOUR_MS = 3_600_000;

testsMayTake(180_000);

let clockAheadMs = 0;
const { service, open } = await withScene({
	models: [LARGE, SMALL],
	clock: { ...systemClock, wallMs: () => systemClock.wallMs() + clockAheadMs },
});
const customer = await signedUp(service);
await topUp(customer, await operator(service));
const tab = await open({ person: customer });
const { page } = tab;

describe.skipIf(!hasChromium)("the life of a key in a browser", () => {
	let secret = "";
	let newSecret = "";
	let ofProject = "";

	const dialog = () => page.getByRole("dialog");
	const fact = (name: string) => page.locator(".facts > div").filter({ has: page.getByText(name, { exact: true }) });
	const shoot = (name: string) => picture(page, name);

	const call = (key: string, model = LARGE) => callWith(service.url, key, model);

	async function pick(label: string, option: string): Promise<void> {
		await dialog().getByRole("combobox", { name: label }).or(dialog().getByLabel(label)).first().click();
		await page.getByRole("option", { name: option }).click();
	}

	test("a new key is limited by its cap, model list and expiry", async () => {
		await page.goto("/keys");
		await page.getByRole("button", { name: "Create a key" }).first().click();
		await dialog().getByLabel("Name").fill("search-api");
		await dialog().getByLabel("Cap in USD").fill("5");
		await pick("Models", LARGE);
		await dialog().getByLabel("Expires").fill("2031-05-01T12:30");
		await shoot("keys-1-create");
		await dialog().getByRole("button", { name: "Create" }).click();
		await page.getByTestId("secret").waitFor();
		secret = (await page.getByTestId("secret").textContent()) ?? "";
		expect(await call(secret)).toBe("answered");
		expect(await call(secret, SMALL)).toBe("403 model_not_allowed");
	});

	test("the secret of a new key is in the snippet of every tool", async () => {
		// One component shows all tools, so the first tool is enough.
		for (const tool of TOOLS)
			expect(JSON.stringify(tool.steps(factsFor(service, secret))), tool.name).toContain(secret);
		for (const { name } of LONG ? TOOLS : []) {
			await dialog().getByRole("tab", { name, exact: true }).click();
			expect(await dialog().getByRole("tabpanel").textContent(), name).toContain(secret);
		}
		await dialog().getByRole("tab", { name: "LlamaIndex", exact: true }).click();
		expect(await dialog().getByRole("tabpanel").textContent()).toContain(secret);
	});

	test("the dialog with a new secret stays open until the user confirms storing it", async () => {
		const shown = () => page.getByTestId("secret").textContent();
		await page.keyboard.press("Escape");
		await page.mouse.click(3, 3);
		await page.mouse.click(1_430, 890);
		for (const key of ["g", "c"]) await page.keyboard.press(key);
		expect(await shown()).toBe(secret);
		await page.goBack();
		expect(await shown()).toBe(secret);
		await page.goBack();
		expect(await shown()).toBe(secret);
		expect(await page.getByRole("button", { name: "Done" }).isDisabled()).toBe(true);
		await storeSecret(page);
		await page.getByTestId("secret").waitFor({ state: "detached" });
		expect(await page.content()).not.toContain(secret);
	});

	test("a saved key has its new cap and models as soon as the page confirms the save", async () => {
		await page.getByRole("link", { name: "search-api" }).click();
		await page.getByRole("tab", { name: "LlamaIndex", exact: true, selected: true }).waitFor();
		expect(await page.content()).not.toContain(secret);
		await fact("Models").getByText(LARGE).waitFor();
		await fact("Cap").getByText("$5.00").waitFor();
		await fact("Expires").getByText("May 1, 2031, 12:30").waitFor();
		const [before] = await service.db.sql.unsafe("select extract(epoch from expires_at) * 1000 as ms from api_key");
		expect(Number(before?.ms)).toBe(Date.parse("2031-05-01T10:30:00Z"));

		await page.getByRole("button", { name: "Edit" }).click();
		await pick("Models", SMALL);
		await dialog().getByLabel("Cap in USD").fill("2.5");
		await pick("Cap period", "Daily");
		await shoot("keys-2-edit");
		await dialog().getByRole("button", { name: "Save" }).click();
		await page.getByText(/The change applies on all instances since/).waitFor();
		expect(await call(secret, SMALL)).toBe("answered");
		await page.getByRole("button", { name: "Done" }).click();
		await fact("Cap").getByText("$2.50").waitFor();
		await fact("Cap")
			.getByText(/per day; resets/)
			.waitFor();
		await shoot("keys-3-daily");
		await fact("Models").getByText(`${LARGE}, ${SMALL}`).waitFor();
	});

	test("an old key works together with its replacement until the grace period ends", async () => {
		await page.getByRole("button", { name: "Rotate" }).click();
		await pick("Keep the old key for", "1 hour");
		await dialog().getByRole("button", { name: "Create the replacement" }).click();
		await page.getByText("Replacement created").waitFor();
		newSecret = (await page.getByTestId("secret").textContent()) ?? "";
		expect(newSecret).not.toBe(secret);
		await storeSecret(page);
		await fact("Models").getByText(`${LARGE}, ${SMALL}`).waitFor();
		await page.getByTestId("secret").waitFor({ state: "detached" });
		expect([await call(secret), await call(newSecret)]).toEqual(["answered", "answered"]);

		clockAheadMs = HOUR_MS + 60_000;
		// Retries: after a jump of the clock the instance admits nothing until its next heartbeat.
		await waitFor(async () => (await call(newSecret)) === "answered", "the replacement to be admitted", 20_000);
		expect(await call(secret)).toBe("401 api_key_expired");
	});

	test.if(LONG)("editing a field of a key does not change the key's exact expiry", async () => {
		const [row] = await service.db.sql`
			update api_key set expires_at = clock_timestamp() + interval '1 day 1.234 seconds'
			where state = 'active' and replaced_by is null returning id, expires_at`;
		await walk(page, `/keys/${row?.id}`);
		await page.getByRole("button", { name: "Edit" }).click();
		await dialog().getByLabel("Name").fill("search-api, second");
		await dialog().getByRole("button", { name: "Save" }).click();
		await page.getByRole("button", { name: "Done" }).click();
		await page.getByRole("heading", { name: "search-api, second" }).waitFor();
		const [after] = await service.db.sql`select expires_at from api_key where id = ${row?.id ?? ""}`;
		expect(after?.expires_at).toEqual(row?.expires_at);
	});

	test("a key is revoked once the user types its name, and its next call gets 401", async () => {
		const [row] = await service.db.sql`
			select id, name from api_key where state = 'active' and replaced_by is null`;
		const name = row?.name ?? "";
		await walk(page, `/keys/${row?.id}`);
		await page.getByRole("button", { name: "Revoke" }).click();
		const revoke = dialog().getByRole("button", { name: "Revoke" });
		await dialog()
			.getByLabel(/Type the key's name/)
			.fill("search");
		expect(await revoke.isDisabled()).toBe(true);
		await page.keyboard.press("Enter");
		await dialog()
			.getByLabel(/Type the key's name/)
			.fill(name);
		expect(await call(newSecret)).toBe("answered");
		await revoke.click();
		await page.getByText(/No instance accepts this key since \d\d:\d\d:\d\d\.\d{3} \(.+\)\./).waitFor();
		expect(await call(newSecret)).toBe("401 api_key_revoked");
		await page.getByText("No request was running with this key.").waitFor();
		await shoot("keys-4-revoked");
		await page.getByRole("button", { name: "Done" }).click();
		await fact("State").getByText("Revoked").waitFor();
		expect(await page.getByRole("button", { name: /Edit|Rotate|Revoke/ }).count()).toBe(0);
	});

	test.if(LONG)("a late response of the key list does not hide a new key", async () => {
		const late = Promise.withResolvers<void>();
		const arrived = Promise.withResolvers<void>();
		let isFirst = true;
		await page.route("**/api/console/keys?*", async (route) => {
			if (route.request().method() !== "GET" || !isFirst) return route.continue();
			isFirst = false;
			const answer = await route.fetch();
			await late.promise;
			await route.fulfill({ response: answer });
			arrived.resolve();
		});
		await page.goto("/keys?create=1");
		const form = page.getByRole("dialog");
		await form.getByLabel("Name").fill("made meanwhile");
		await form.getByRole("button", { name: "Create" }).click();
		await storeSecret(page);
		const made = page.getByRole("link", { name: "made meanwhile" });
		await made.waitFor();
		late.resolve();
		await arrived.promise;
		// Waits for one frame, which would draw the changes of the late response.
		await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
		expect(await made.isVisible()).toBe(true);
		await page.unroute("**/api/console/keys?*");
	});

	test("a new project gets its cap, and a key is created in the project", async () => {
		await walk(page, "/projects");
		await page.getByText("No projects yet.").waitFor();
		await page.getByRole("button", { name: "Create a project" }).first().click();
		await dialog().getByLabel("Name").fill("search");
		await dialog().getByLabel("Cap in USD").fill("50");
		await pick("Cap period", "Monthly");
		await shoot("projects-1-create");
		await dialog().getByRole("button", { name: "Create" }).click();
		await page.getByRole("heading", { name: "search", exact: true }).waitFor();
		await page.getByText("No keys yet.").waitFor();
		await page.getByRole("button", { name: "Create a key" }).click();
		await dialog().getByLabel("Name").fill("search-indexer");
		await shoot("projects-2-key");
		await dialog().getByRole("button", { name: "Create", exact: true }).click();
		ofProject = (await page.getByTestId("secret").textContent()) ?? "";
		await storeSecret(page);
		await page.getByRole("table", { name: "Keys of this project" }).getByText("search-indexer").waitFor();
		expect(await call(ofProject)).toBe("answered");
	});

	test("archiving a project refuses requests of its keys at once", async () => {
		await page.getByRole("button", { name: "Archive" }).click();
		await dialog()
			.getByLabel(/Type the project's name/)
			.fill("search");
		await dialog().getByRole("button", { name: "Archive" }).click();
		await page.getByText(/No instance accepts a key of this project since/).waitFor();
		expect(await call(ofProject)).toBe("403 project_archived");
		await page.getByRole("button", { name: "Done" }).click();
		await fact("State").getByText("Archived").waitFor();
	});

	test("keys of an archived project are marked in the list and absent in the playground", async () => {
		const link = page
			.getByRole("table", { name: "Keys of this project" })
			.getByRole("link", { name: "search-indexer" });
		await link.click();
		await page.getByRole("heading", { name: "search-indexer", exact: true }).waitFor();
		await fact("State").getByText("Archived").waitFor();
		expect(await page.getByRole("heading", { name: "Quick start" }).count()).toBe(0);
		await customer.send("POST", "/api/console/keys", { name: "in-use", capUsd: "5" });
		await walk(page, "/playground");
		await page.getByRole("combobox", { name: "Key", exact: true }).click();
		await page.getByRole("option", { name: /in-use/ }).waitFor();
		expect(await page.getByRole("option", { name: /search-indexer/ }).count()).toBe(0);
		await page.keyboard.press("Escape");
	});

	test("the browser logs no error and no request fails", () => {
		expect(tab.complaints).toEqual([]);
		expect(tab.failures).toEqual([]);
	});
});
