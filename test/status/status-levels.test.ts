import { expect, test } from "bun:test";
import type { CatalogSnapshot, Model } from "../../src/catalog/model.ts";
import { statusLevels } from "../../src/status/status-levels.ts";

type Replica = Parameters<typeof statusLevels>[1][number];

const model = (id: string, kind: Model["kind"] = "chat", modes: readonly ("chat" | "completions")[] = ["chat"]) =>
	({ id, kind, modes: new Set(kind === "chat" ? modes : []) }) as unknown as Model;
const catalogOf = (...models: readonly Model[]) =>
	({ models: new Map(models.map((one) => [one.id, one])) }) as unknown as CatalogSnapshot;
const replica = (modelId: string, more: Partial<Replica> = {}): Replica => ({
	modelId,
	health: "up",
	breaker: "closed",
	draining: false,
	...more,
});
const levels = (snapshot: CatalogSnapshot, replicas: readonly Replica[], admitting = true) =>
	Object.fromEntries(statusLevels(snapshot, replicas, admitting));

test("a model is operational, degraded or down by the number of its servers up", () => {
	const one = catalogOf(model("m"));
	const of = (...replicas: Partial<Replica>[]) =>
		levels(
			one,
			replicas.map((more) => replica("m", more)),
		)["model:m"];
	expect(of({}, {})).toBe("operational");
	expect(of({}, { health: "down" })).toBe("degraded");
	expect(of({}, { breaker: "open" })).toBe("degraded");
	expect(of({ health: "down" }, { health: "down" })).toBe("down");
	expect(of({ breaker: "open" })).toBe("down");
	expect(of({ breaker: "half_open" })).toBe("operational");
	expect(of({}, { health: "down", draining: true })).toBe("operational");
});

test("a model whose servers were never checked has no level", () => {
	const two = catalogOf(model("m"), model("n"));
	expect(levels(two, [replica("m", { health: "unknown" }), replica("n"), replica("n", { health: "unknown" })])).toEqual(
		{ service: "operational", "endpoint:chat": "operational", "model:n": "operational" },
	);
	expect(levels(two, [replica("m", { health: "unknown" })])).toEqual({});
	expect(levels(catalogOf(), [])).toEqual({});
});

test("the levels of endpoints and service follow from the levels of their models", () => {
	const all = catalogOf(model("a", "chat", ["chat", "completions"]), model("b"), model("e", "embedding"));
	expect(levels(all, [replica("a"), replica("b", { health: "down" }), replica("e", { health: "down" })])).toEqual({
		service: "degraded",
		"endpoint:chat": "degraded",
		"endpoint:completions": "operational",
		"endpoint:embeddings": "down",
		"model:a": "operational",
		"model:b": "down",
		"model:e": "down",
	});
});

test("an instance that admits no requests reports everything as down", () => {
	expect(levels(catalogOf(model("a"), model("r", "rerank")), [replica("a"), replica("r")], false)).toEqual({
		service: "down",
		"endpoint:chat": "down",
		"endpoint:rerank": "down",
		"model:a": "down",
		"model:r": "down",
	});
	expect(levels(catalogOf(), [], false)).toEqual({ service: "down" });
});
