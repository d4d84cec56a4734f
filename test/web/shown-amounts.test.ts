/** Amounts next to each other on a page: each label must show its own amount. */
import { expect, test } from "bun:test";
import { createElement, type ReactElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { billLines } from "../../src/admission/price.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { BalanceFigures, CostLines } from "../../src/web/parts/account-tables.tsx";
import { EVERY_RATE } from "../support/every-rate.ts";

const usd = (amount: number) => nanoUsd(amount * 1_000_000_000);

function textsOf(element: ReactElement): string[] {
	return renderToStaticMarkup(element)
		.split(/<[^>]*>/)
		.map((text) => text.trim())
		.filter((text) => text !== "");
}

test("the balance figures show each amount under its label", () => {
	const balance = { availableNanoUsd: usd(11), heldNanoUsd: usd(12), balanceNanoUsd: usd(23), spentNanoUsd: usd(14) };
	const promotions = [
		{ lastDay: "2027-01-31", leftNanoUsd: usd(3) },
		{ lastDay: null, leftNanoUsd: usd(4) },
	];
	const figures = createElement(BalanceFigures, { balance, promotions }, "what holds it");
	expect(textsOf(figures)).toEqual([
		...["Available", "$11.00", "for new requests"],
		...["Held", "$12.00", "what holds it"],
		...["Balance", "$23.00", "available plus held"],
		...["Total spent", "$14.00"],
		...["Promotional credit", "$7.00"],
		...["included in the balance, spent first;", "$3.00", "expires after", "Jan 31, 2027"],
	]);
});

test("a request's cost lines show each part's name, rate and unit", () => {
	const used = {
		promptTokens: 50,
		cachedTokens: 10,
		completionTokens: 60,
		requests: 1,
		images: 2,
		audioSeconds: 3,
		searches: 4,
	};
	const lines = billLines(EVERY_RATE, used);
	expect(textsOf(createElement(CostLines, { lines })).slice(4)).toEqual([
		...["Input", "40", "$1.00", "per million tokens", "$0.00004"],
		...["Cached input", "10", "$2.00", "per million tokens", "$0.00002"],
		...["Output", "60", "$3.00", "per million tokens", "$0.00018"],
		...["Request", "1", "$0.000004", "per request", "$0.000004"],
		...["Images", "2", "$0.000005", "per image", "$0.00001"],
		...["Audio", "3", "$0.000006", "per second", "$0.000018"],
		...["Searches", "4", "$0.000007", "per search", "$0.000028"],
	]);
});
