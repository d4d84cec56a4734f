/** Finds problems of layout and accessibility on the shown page. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { WITH_PICTURES } from "./stage.ts";

/** Axe is run through the debugger's protocol, because the page's security policy blocks scripts from elsewhere. */
const AXE = readFileSync(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir), "utf8");

interface Violation {
	readonly id: string;
	readonly help: string;
	readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

interface Axe {
	run(root: Document, options: object): Promise<{ readonly violations: Violation[] }>;
}

export async function layoutProblems(page: Page): Promise<string[]> {
	const { wide, parts, names } = await page.evaluate(misfits);
	return [
		...(wide > 0 ? [`scrolls sideways by ${wide} px`] : []),
		...parts.map((part) => `is wider than its panel: ${part}`),
		...names.map((name) => `runs into its value: ${name}`),
	];
}

export async function pageProblems(page: Page): Promise<string[]> {
	const problems = await layoutProblems(page);
	let violations = await page.evaluate(violationsOf, WITH_PICTURES);
	if (violations === undefined) {
		await page.evaluate(AXE);
		violations = (await page.evaluate(violationsOf, WITH_PICTURES)) as Violation[];
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

/**
 * Runs in the page; undefined before axe is loaded. Removes closed details while axe runs, because hidden elements cost
 * a millisecond each. The short form also hides siblings with equal elements, classes and roles, such as table rows.
 */
async function violationsOf(whole: boolean): Promise<Violation[] | undefined> {
	const { axe } = globalThis as { axe?: Axe };
	if (axe === undefined) return undefined;
	const takenOut = [...document.querySelectorAll("details:not([open])")].map((details) => {
		const nodes = [...details.childNodes].filter((node) => node.nodeName !== "SUMMARY");
		for (const node of nodes) node.remove();
		return { details, nodes };
	});
	const again: HTMLElement[] = [];
	const known = new Map<string, number>();
	const worthOf = ({ name, value }: Attr) =>
		/^(class|role|style|type|scope|aria-\w+)$/.test(name) ? value : value !== "";
	/** Returns a hash of an element's structure, equal for elements with the same structure. */
	const makeOf = (element: Element): number => {
		const parts = new Set<string>();
		for (const child of element.childNodes) {
			if (!(child instanceof Element)) {
				if (child.textContent?.trim() !== "") parts.add("text");
				continue;
			}
			const style = getComputedStyle(child);
			const make = `${makeOf(child)} ${style.color} ${style.backgroundColor}`;
			if (parts.has(make) && child instanceof HTMLElement) again.push(child);
			parts.add(make);
		}
		const attributes = [...element.attributes].map((one) => `${one.name}=${worthOf(one)}`).sort();
		const make = [element.tagName, ...attributes, ...parts].join("|");
		const number = known.get(make) ?? known.size;
		known.set(make, number);
		return number;
	};
	if (!whole) makeOf(document.body);
	const sheet = new CSSStyleSheet();
	sheet.replaceSync("[data-again] { display: none !important }");
	for (const element of again) element.dataset.again = "";
	document.adoptedStyleSheets.push(sheet);
	try {
		return (await axe.run(document, { resultTypes: ["violations"], preload: false, iframes: false })).violations;
	} finally {
		document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
		for (const element of again) delete element.dataset.again;
		for (const { details, nodes } of takenOut) details.append(...nodes);
	}
}

/** Runs in the page as one function, because each separate query costs a round trip. */
function misfits(): { wide: number; parts: string[]; names: string[] } {
	// A table may scroll within its panel, but a card may not.
	const outsideTheirPanels = [
		...document.querySelectorAll(".panel .table-room, .panel .stats, .panel .stat-value, .panel td"),
	].filter((part) => {
		if (part.tagName === "TD" && getComputedStyle(part).display === "table-cell") return false;
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
