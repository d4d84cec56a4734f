import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import { englishText } from "../../src/base/translate.ts";
import { createCatalog } from "../../src/catalog/catalog.ts";
import { findModel, notFoundText } from "../../src/catalog/model.ts";
import { watchCatalog } from "../../src/catalog/watch.ts";
import { listModels } from "../../src/gateway/lookups/models.ts";
import { resolveModel } from "../../src/gateway/serve/model-for.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";
import { modelYaml } from "./catalog-text.ts";

const ANYONE = { id: "acc_1", tags: [] };

/** A model retires at the start of its day (UTC) with its aliases and routes; errors name the day. */

const { statements } = await withDatabase();
const DAY_MS = 86_400_000;
const NEW_YEAR_MS = Date.UTC(2027, 0, 1);
const TEXT = `models:
${modelYaml({ id: "stays" })}${modelYaml({ id: "goes", extra: "    aliases: [nick]\n    retires_on: 2027-01-01\n" })}${modelYaml({ id: "later", extra: '    retires_on: "2027-01-02"\n' })}
routes:
  - { id: both, models: [goes, stays] }
  - { id: going, models: [nick, later] }
`;

function catalogAt(nowMs: number, text = TEXT) {
	const clock = createManualClock(nowMs);
	const file = { text };
	const deps = { statements, clock, log: silentLog, env: {} };
	return { clock, file, catalog: createCatalog({ ...deps, readFile: async () => file.text }) };
}

test("a model is served until its retirement day and refused from then on", async () => {
	const { clock, catalog } = catalogAt(NEW_YEAR_MS - 1);
	await catalog.reload();
	const listed = () =>
		listModels(catalog.current(), { models: null, project: null }, () => true).data.map(({ id, expiration_date }) => [
			id,
			expiration_date,
		]);
	const before: (string | null)[][] = [
		["stays", null],
		["goes", "2027-01-01"],
		["later", "2027-01-02"],
		["both", null],
		["going", "2027-01-02"],
	];
	expect(listed()).toEqual(before);
	expect(catalog.isStale()).toBe(false);
	const revision = catalog.current().revision;
	await catalog.reload();
	expect(catalog.current().revision).toBe(revision);

	clock.advance(1);
	expect(catalog.isStale()).toBe(true);
	await catalog.reload();
	expect(catalog.isStale()).toBe(false);
	expect(listed()).toEqual(before.filter(([id]) => id !== "goes"));
	const { routes } = catalog.current();
	expect([...routes.values()].map(({ models }) => models.map(({ id }) => id))).toEqual([["stays"], ["later"]]);
	for (const name of ["goes", "nick"]) {
		expect(findModel(catalog.current(), name)).toBeUndefined();
		expect(() => resolveModel(catalog.current(), name, { kind: "chat" }, ANYONE)).toThrow(
			`The model \`${name}\` was retired on 2027-01-01`,
		);
	}

	clock.advance(DAY_MS);
	await catalog.reload();
	expect(listed()).toEqual([
		["stays", null],
		["both", null],
	]);
	expect(englishText(notFoundText(catalog.current(), "going"))).toContain("was retired on 2027-01-02");
	expect(englishText(notFoundText(catalog.current(), "none"))).toContain("does not exist");

	clock.advance(-2 * DAY_MS);
	expect(catalog.isStale()).toBe(true);
	await catalog.reload();
	expect(listed()).toEqual(before);
});

test("a request for a kind whose last model retired gets an error with the day", async () => {
	const text = `models:
  - id: vectors
    kind: embedding
    retires_on: 2027-01-01
    rates: { input: "1" }
    upstreams: [{ url: "http://127.0.0.1:8000/v1", model: served, dialect: vllm }]
`;
	const { catalog } = catalogAt(NEW_YEAR_MS, text);
	await catalog.reload();
	expect(() => resolveModel(catalog.current(), "vectors", { kind: "embedding" }, ANYONE)).toThrow(
		"was retired on 2027-01-01",
	);
	expect(() => resolveModel(catalog.current(), "vectors", { kind: "rerank" }, ANYONE)).toThrow(
		"No model for this endpoint",
	);
});

test("a private model and its route are unknown after the retirement day", async () => {
	const hidden = modelYaml({ id: "secret", extra: "    visible_to: [partner]\n    retires_on: 2027-01-01\n" });
	const text = `models:\n${modelYaml()}${hidden}routes:\n  - { id: way, models: [secret] }\n`;
	const { catalog } = catalogAt(NEW_YEAR_MS, text);
	await catalog.reload();
	for (const name of ["secret", "way"])
		expect(englishText(notFoundText(catalog.current(), name))).toContain("does not exist");
});

test("a model retires on its day without a change of the file", async () => {
	const path = join(temporaryFolder(), "tollgate.yaml");
	writeFileSync(path, TEXT);
	const { clock, catalog } = catalogAt(NEW_YEAR_MS - 60_000);
	// Reloads before the clock moves, so that the load is earlier than the retirement.
	await catalog.reload();
	const wentAtMs: number[] = [];
	catalog.onChange(({ models }) => {
		if (!models.has("goes")) wentAtMs.push(clock.wallMs());
	});
	const watching = watchCatalog({ clock, log: silentLog, reload: catalog.reload, isStale: catalog.isStale }, { path });
	try {
		while (wentAtMs.length === 0 && clock.wallMs() < NEW_YEAR_MS + 600_000) {
			// A check has ended when the timer of the next one is set.
			await waitFor(() => clock.pending() > 0 || wentAtMs.length > 0, "the next look");
			clock.advance(1_000);
		}
		expect(wentAtMs).toHaveLength(1);
		expect(wentAtMs[0]).toBeGreaterThanOrEqual(NEW_YEAR_MS);
	} finally {
		watching.stop();
	}
});
