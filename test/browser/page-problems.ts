/** What is wrong with a page as it stands: for the eye, for a narrow window, for who cannot see it. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

/** Run in the page by the debugger's protocol, which no policy of the page forbids. */
const AXE = readFileSync(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir), "utf8");

/** Undefined where the page has not got it yet. */
const RUN_AXE =
	"globalThis.axe?.run(document, { resultTypes: ['violations'], preload: false, iframes: false }).then((result) => result.violations)";

interface Violation {
	readonly id: string;
	readonly help: string;
	readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** What does not fit. */
export async function layoutOf(page: Page): Promise<string[]> {
	const { wide, parts, names } = await page.evaluate(misfits);
	return [
		...(wide > 0 ? [`scrolls sideways by ${wide} px`] : []),
		...parts.map((part) => `is wider than its panel: ${part}`),
		...names.map((name) => `runs into its value: ${name}`),
	];
}

/** What does not fit, and what axe finds. */
export async function problemsOf(page: Page): Promise<string[]> {
	const problems = await layoutOf(page);
	let violations = (await page.evaluate(RUN_AXE)) as Violation[] | undefined;
	if (violations === undefined) {
		await page.evaluate(AXE);
		violations = (await page.evaluate(RUN_AXE)) as Violation[];
	}
	for (const { id, help, nodes } of violations) {
		problems.push(
			`${id}: ${help}: ${nodes
				.slice(0, 2)
				.map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary?.slice(0, 200) ?? ""}`)
				.join(" | ")}`,
		);
	}
	return problems;
}

/** Runs in the page, all in one: each question by itself takes as long to be asked as to be answered. */
function misfits(): { wide: number; parts: string[]; names: string[] } {
	const outsideTheirPanels = [
		...document.querySelectorAll(".panel table.data, .panel .stats, .panel .stat-value, .panel td"),
	].filter((part) => {
		const panel = part.closest(".panel")?.getBoundingClientRect();
		const box = part.getBoundingClientRect();
		return panel !== undefined && box.width > 0 && (box.right > panel.right + 1 || box.left < panel.left - 1);
	});
	const overTheirValues = [...document.querySelectorAll(".facts dt")].filter(
		(name) => name.scrollWidth > name.clientWidth,
	);
	return {
		wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
		parts: outsideTheirPanels.map((part) => `${part.tagName} ${part.textContent?.slice(0, 60)}`),
		names: overTheirValues.map((name) => name.textContent ?? ""),
	};
}
