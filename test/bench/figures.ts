/** Measurements of a run: one value per round and gateway, so that ratios are computed within a round. */
import type { Spread } from "./statistics.ts";
import { spreadOf } from "./statistics.ts";

export interface Figure {
	readonly scenario: string;
	readonly name: string;
	readonly unit: string;
	/** Name of the measured gateway. */
	readonly row: string;
	/** One value for each round. */
	readonly values: number[];
}

export type Figures = ReturnType<typeof createFigures>;

export function createFigures() {
	const all: Figure[] = [];
	const find = (scenario: string, name: string, row: string) =>
		all.find((figure) => figure.scenario === scenario && figure.name === name && figure.row === row);
	return {
		all: all as readonly Figure[],
		find,
		add(scenario: string, name: string, unit: string, row: string, value: number) {
			const figure = find(scenario, name, row);
			if (figure) figure.values.push(value);
			else all.push({ scenario, name, unit, row, values: [value] });
		},
	};
}

/** `a` divided by `b` in each round; undefined unless both were measured in the same rounds. */
export function ratioOf(a: Figure | undefined, b: Figure | undefined): Spread | undefined {
	if (!a || !b || a.values.length === 0 || a.values.length !== b.values.length) return undefined;
	const ratios = a.values.map((value, round) => value / (b.values[round] as number));
	return ratios.every(Number.isFinite) ? spreadOf(ratios) : undefined;
}
