import { describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { createLog, silentLog } from "../../src/base/log.ts";
import { createCatalog, createFixedCatalog } from "../../src/catalog/catalog.ts";
import { findModel } from "../../src/catalog/model.ts";
import type { Statements } from "../../src/db/statements.ts";
import { withDatabase } from "../support/database.ts";
import { waitFor } from "../support/wait.ts";
import { oneModel } from "./catalog-text.ts";
import { chatSpec } from "./model-specs.ts";

const { statements: stored } = await withDatabase();

function catalogOf(text: string, statements: Statements = stored) {
	const file = { text, reads: 0 };
	const lines: string[] = [];
	const log = createLog({ level: "info", write: (line) => lines.push(line) });
	const readFile = async () => {
		file.reads++;
		if (file.text === "absent") throw new Error("ENOENT");
		return file.text;
	};
	return { catalog: createCatalog({ statements, clock: systemClock, log, readFile, env: {} }), file, lines };
}

describe("a catalogue from a file", () => {
	test("has no models before its first load, then finds models by id or alias", async () => {
		const { catalog } = catalogOf(oneModel({ id: "first", extra: "    aliases: [nick]\n" }));
		expect(catalog.current()).toMatchObject({ revision: 0, models: new Map() });
		expect(await catalog.reload()).toEqual({ ok: true });
		const snapshot = catalog.current();
		expect(snapshot.revision).toBe(1);
		const model = findModel(snapshot, "first");
		expect(model?.rateCard).toMatchObject({ id: "first@1", version: 1 });
		expect(model?.rateCard.input as number).toBe(230_000);
		expect(model?.createdS).toBeGreaterThan(1_700_000_000);
		expect(findModel(snapshot, "nick")).toBe(model as NonNullable<typeof model>);
		expect(findModel(snapshot, "nobody")).toBeUndefined();
		expect(Object.isFrozen(model)).toBe(true);
		expect(Object.isFrozen(model?.rateCard)).toBe(true);
	});

	test("stores batch rates as a separate rate card with versions", async () => {
		const text = (rate: string, batch: string) =>
			oneModel({
				id: "batched",
				input: rate,
				extra: `    modes: [chat, batch]\n    batch_rates: { input: "${batch}", output: "0" }\n`,
			});
		const { catalog, file } = catalogOf(text("0.5", "0.1"));
		const cards = () => {
			const model = findModel(catalog.current(), "batched");
			return [model?.rateCard.id, model?.batch?.rateCard?.id, model?.batch?.rateCard?.input as number | undefined];
		};
		await catalog.reload();
		expect(cards()).toEqual(["batched@1", "batched#batch@1", 100_000]);
		file.text = text("0.5", "0.2");
		await catalog.reload();
		expect(cards()).toEqual(["batched@1", "batched#batch@2", 200_000]);
		file.text = text("0.6", "0.2");
		await catalog.reload();
		expect(cards()).toEqual(["batched@2", "batched#batch@2", 200_000]);
	});

	test("keeps the previous models if the file is wrong and shows every problem", async () => {
		const { catalog, file, lines } = catalogOf(oneModel({ id: "kept" }));
		await catalog.reload();
		const before = catalog.current();
		file.text = "models: []\nnope: 1\nnada: 2\n";
		const result = await catalog.reload();
		expect(result).toMatchObject({ ok: false, lasting: true });
		expect(catalog.current()).toBe(before);
		expect(catalog.problems().map(({ line }) => line)).toEqual([2, 3]);
		const logged = lines.find((line) => line.includes("was not loaded")) ?? "";
		expect(logged).toContain("nope");
		expect(logged).toContain("nada");
		file.text = oneModel({ id: "kept", input: "0.5" });
		expect(await catalog.reload()).toEqual({ ok: true });
		expect(catalog.problems()).toEqual([]);
		expect(catalog.current().models.get("kept")?.rateCard.version).toBe(2);
		expect(before.models.get("kept")?.rateCard.version).toBe(1);
	});

	test("keeps the previous models if the file cannot be read", async () => {
		const { catalog, file } = catalogOf(oneModel({ id: "readable" }));
		await catalog.reload();
		file.text = "absent";
		expect(await catalog.reload()).toMatchObject({ ok: false, lasting: false });
		expect(catalog.current().models.has("readable")).toBe(true);
	});

	test("changes nothing if the file's text is unchanged", async () => {
		const { catalog } = catalogOf(oneModel({ id: "same" }));
		let changes = 0;
		catalog.onChange(() => changes++);
		await catalog.reload();
		await catalog.reload();
		expect(changes).toBe(1);
		expect(catalog.current().revision).toBe(1);
	});

	test("calls all its listeners although one of them throws", async () => {
		const { catalog } = catalogOf(`${oneModel({ id: "heard" })}limits: { connect_s: 7 }\n`);
		const heard: unknown[] = [];
		catalog.onChange(() => {
			throw new Error("a broken part");
		});
		const stop = catalog.onChange((snapshot, limits) => heard.push([[...snapshot.models.keys()], limits.connectMs]));
		await catalog.reload();
		expect(heard).toEqual([[["heard"], 7000]]);
		expect(catalog.limits().connectMs).toBe(7000);
		stop();
	});

	test("reads the file once more for all calls that arrive during a reload", async () => {
		const { catalog, file } = catalogOf(oneModel({ id: "v1" }));
		const first = catalog.reload();
		file.text = oneModel({ id: "v2" });
		await Promise.all([first, catalog.reload(), catalog.reload(), catalog.reload()]);
		expect([...catalog.current().models.keys()]).toEqual(["v2"]);
		expect(file.reads).toBe(2);
	});

	test("runs reloads one after another, also a reload requested while another ends", async () => {
		const reads: ((text: string) => void)[] = [];
		const readFile = () => new Promise<string>((resolve) => reads.push(resolve));
		const statements = stored;
		const catalog = createCatalog({ statements, clock: systemClock, log: silentLog, readFile, env: {} });
		const again = catalog.reload().then(() => catalog.reload());
		const following = catalog.reload();
		reads.shift()?.(oneModel({ id: "v1" }));
		await waitFor(() => reads.length > 0, "the next one");
		reads.pop()?.(oneModel({ id: "v2" }));
		await following;
		for (const read of reads) read(oneModel({ id: "v1" }));
		await again;
		expect([...catalog.current().models.keys()]).toEqual(["v2"]);
	});

	test("applies new model servers without a database, but not new prices", async () => {
		let away = false;
		const flaky = new Proxy(stored, {
			apply(target, self, given) {
				if (away) throw new Error("connection refused");
				return Reflect.apply(target, self, given);
			},
		});
		const { catalog, file } = catalogOf(oneModel({ id: "outage" }), flaky);
		await catalog.reload();
		away = true;
		file.text = oneModel({ id: "outage", url: "http://replacement/v1" });
		expect(await catalog.reload()).toEqual({ ok: true });
		expect(catalog.current().models.get("outage")?.upstreams[0]?.url).toBe("http://replacement/v1");
		file.text = oneModel({ id: "outage", input: "9" });
		expect(await catalog.reload()).toMatchObject({ ok: false, lasting: false });
		expect(catalog.current().models.get("outage")?.rateCard.version).toBe(1);
		away = false;
		expect(await catalog.reload()).toEqual({ ok: true });
		expect(catalog.current().models.get("outage")?.rateCard.version).toBe(2);
	});
});

describe("a catalogue without a file", () => {
	const fixed = () => createFixedCatalog({ statements: stored, clock: systemClock, log: silentLog });

	test("stores prices and versions of the given models", async () => {
		const catalog = fixed();
		await catalog.setModels([chatSpec("given"), { ...chatSpec("other"), aliases: ["alias"] }]);
		expect([...catalog.current().models.values()].map(({ rateCard }) => rateCard.id)).toEqual(["given@1", "other@1"]);
		expect(findModel(catalog.current(), "alias")?.id).toBe("other");
		await catalog.setModels([]);
		expect(catalog.current()).toMatchObject({ revision: 2, models: new Map(), aliases: new Map() });
	});

	test("has the models of the last of several calls that overlap", async () => {
		const catalog = fixed();
		// The first call stores a price and the second does not, so without a queue the second call could end first.
		await Promise.all([catalog.setModels([chatSpec("slow", 77)]), catalog.setModels([])]);
		expect(catalog.current().models.size).toBe(0);
	});

	test("refuses two models with the same name", async () => {
		const catalog = fixed();
		await expect(catalog.setModels([chatSpec("twice"), chatSpec("twice")])).rejects.toThrow("every id and alias");
	});
});
