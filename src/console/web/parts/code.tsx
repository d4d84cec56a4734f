import { useId, useState } from "react";
import { t } from "../texts.tsx";
import { CopyButton } from "./text.tsx";

export interface Snippet {
	readonly label: string;
	readonly code: string;
}

export function CodeBlock({ code, label = t("Copy") }: { code: string; label?: string }) {
	return (
		<div className="code">
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
			<pre tabIndex={0}>
				<code>{code}</code>
			</pre>
			<CopyButton text={code} label={label} />
		</div>
	);
}

/** The same thing in several languages. Arrow keys move between them. */
export function CodeTabs({ snippets }: { snippets: readonly Snippet[] }) {
	const [index, setIndex] = useState(0);
	const id = useId();
	const shown = snippets[index] ?? snippets[0];
	if (!shown) return null;
	function move(step: number) {
		const next = (index + step + snippets.length) % snippets.length;
		setIndex(next);
		document.getElementById(`${id}-tab-${next}`)?.focus();
	}
	return (
		<div className="code-tabs">
			<div role="tablist" aria-label={t("Language")} className="tabs">
				{snippets.map((snippet, place) => (
					<button
						key={snippet.label}
						id={`${id}-tab-${place}`}
						type="button"
						role="tab"
						aria-selected={place === index}
						aria-controls={`${id}-panel`}
						tabIndex={place === index ? 0 : -1}
						onClick={() => setIndex(place)}
						onKeyDown={(event) => {
							if (event.key === "ArrowRight") move(1);
							if (event.key === "ArrowLeft") move(-1);
						}}
					>
						{snippet.label}
					</button>
				))}
			</div>
			<div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-tab-${index}`}>
				<CodeBlock code={shown.code} />
			</div>
		</div>
	);
}
