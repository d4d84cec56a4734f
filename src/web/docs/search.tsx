import { Stack, TextInput } from "@mantine/core";
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";

export interface DocsSection {
	readonly id: string;
	readonly title: string;
	readonly body: () => ReactNode;
}

interface Passage {
	readonly to: string;
	readonly section: string;
	readonly heading: string;
	readonly text: string;
}

const SHOWN_MAX = 12;
const EXCERPT_CHARS = 90;

export const sectionPath = (id: string): string => (id === "quick-start" ? "/docs" : `/docs/${id}`);

/** `#two-factor-sign-in` for "Two-factor sign-in". */
export const anchorOf = (heading: string): string => heading.toLowerCase().replace(/[^a-z0-9]+/g, "-");

/**
 * Searches all pages. At the first letter the pages are drawn hidden and their text is read, so that no index can be
 * outdated.
 */
export function DocsSearch({ sections, onGone }: { sections: readonly DocsSection[]; onGone: () => void }) {
	const [wanted, setWanted] = useState("");
	const drawn = useRef<HTMLDivElement>(null);
	const [found, setFound] = useState<readonly Passage[]>([]);
	const words = wordsOf(wanted);
	useLayoutEffect(() => {
		if (drawn.current) setFound(search(passagesOf(drawn.current, sections), wordsOf(wanted)));
	}, [sections, wanted]);
	return (
		<search>
			<TextInput
				aria-label={t("Search the docs")}
				placeholder={t("Search, press /")}
				data-search
				autoComplete="off"
				value={wanted}
				onChange={(event) => setWanted(event.currentTarget.value)}
			/>
			<div hidden ref={drawn}>
				{wanted !== "" &&
					sections.map(({ id, body: Body }) => (
						<div key={id} data-section={id}>
							<Body />
						</div>
					))}
			</div>
			{words.length > 0 && (
				<Stack component="ul" className="bare" gap="xs" aria-label={t("Found in the docs")} aria-live="polite">
					{found.map((passage) => (
						<li key={`${passage.to} ${passage.text}`}>
							<Link
								to={passage.to}
								onClick={() => {
									setWanted("");
									onGone();
								}}
							>
								{passage.heading}
							</Link>
							<div className="small dim">{excerpt(passage.text, words[0] ?? "")}</div>
						</li>
					))}
					{found.length === 0 && <li className="dim">{t("Nothing was found.")}</li>}
				</Stack>
			)}
		</search>
	);
}

const wordsOf = (wanted: string): string[] => wanted.trim().toLowerCase().split(/\s+/).filter(Boolean);

/** The text between two headings. */
function passagesOf(root: HTMLElement, sections: readonly DocsSection[]): Passage[] {
	return sections.flatMap(({ id, title }) => {
		const section = root.querySelector(`[data-section="${id}"]`);
		const passages: Passage[] = [];
		let heading = title;
		let text = "";
		const add = () => {
			const to = heading === title ? sectionPath(id) : `${sectionPath(id)}#${anchorOf(heading)}`;
			if (text !== "" || heading !== title) passages.push({ to, section: title, heading, text });
			text = "";
		};
		for (const node of section?.children ?? []) {
			if (/^H[23]$/.test(node.tagName)) {
				add();
				heading = node.textContent ?? title;
			} else text += `${node.textContent ?? ""} `;
		}
		add();
		return passages;
	});
}

/** All words must occur; matches in headings come first. */
function search(passages: readonly Passage[], words: readonly string[]): Passage[] {
	const inHeading = ({ heading }: Passage) => words.every((word) => heading.toLowerCase().includes(word));
	return passages
		.filter(({ section, heading, text }) => {
			const all = `${section} ${heading} ${text}`.toLowerCase();
			return words.every((word) => all.includes(word));
		})
		.sort((one, other) => Number(inHeading(other)) - Number(inHeading(one)))
		.slice(0, SHOWN_MAX);
}

function excerpt(text: string, word: string): string {
	const at = text.toLowerCase().indexOf(word);
	const from = Math.max(0, at - EXCERPT_CHARS / 3);
	const cut = text.slice(from, from + EXCERPT_CHARS).trim();
	return `${from > 0 ? "…" : ""}${cut}${from + EXCERPT_CHARS < text.length ? "…" : ""}`;
}
