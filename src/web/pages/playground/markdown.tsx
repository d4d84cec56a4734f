import Markdown from "react-markdown";
import remarkGfm from "remark-gfm";

/**
 * Draws an answer's Markdown as elements: HTML stays text, and links have safe schemes only. Images become links,
 * because loading an image would tell its server that the answer was read.
 */
export default function AnswerMarkdown({ text }: { text: string }) {
	return (
		<div className="markdown">
			<Markdown
				remarkPlugins={[remarkGfm]}
				components={{
					a: ({ href, children }) => <Away to={href}>{children}</Away>,
					img: ({ src, alt }) => <Away to={typeof src === "string" ? src : undefined}>{alt || src}</Away>,
					table: ({ children }) => (
						<div className="table-room">
							<table className="data">{children}</table>
						</div>
					),
				}}
			>
				{text}
			</Markdown>
		</div>
	);
}

const Away = ({ to, children }: { to: string | undefined; children: React.ReactNode }) => (
	<a href={to} target="_blank" rel="noreferrer">
		{children}
	</a>
);
