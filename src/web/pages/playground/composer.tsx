import { Button, FileButton, Group, Stack, Textarea } from "@mantine/core";
import { useState } from "react";
import { ActButton, Form, LinkButton } from "../../parts/form.tsx";
import { Notice } from "../../parts/page.tsx";
import { t } from "../../texts.tsx";
import type { MessageImage, QuestionTurn } from "./conversation.ts";

const PICTURES_MAX = 4;
const PICTURE_BYTES_MAX = 4 * 1024 * 1024;
const PICTURE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/** Input for the next message. `state` says why sending is disabled, or that an answer is streaming. */
export function Composer(props: {
	pictures: boolean;
	state: "ready" | "busy" | "waiting" | "off";
	onSend: (turn: QuestionTurn) => void;
	onStop: () => void;
}) {
	const [draft, setDraft] = useState("");
	const [pictures, setPictures] = useState<readonly MessageImage[]>([]);
	const [problem, setProblem] = useState<string>();
	const shown = props.pictures ? pictures : [];

	function send(): void {
		if (props.state !== "ready" || draft.trim() === "") return;
		props.onSend({ role: "user", content: draft.trim(), pictures: shown });
		setDraft("");
		setPictures([]);
	}
	async function add(files: readonly File[]): Promise<void> {
		setProblem(undefined);
		const good = files.filter(({ type, size }) => PICTURE_TYPES.includes(type) && size <= PICTURE_BYTES_MAX);
		if (good.length < files.length) setProblem(t("Images must be PNG, JPEG, WebP or GIF of up to 4 MB."));
		const added = await Promise.all(good.map(pictureOf));
		if (pictures.length + added.length > PICTURES_MAX)
			setProblem(t("A message can have up to {count} images.", { count: PICTURES_MAX }));
		setPictures([...pictures, ...added].slice(0, PICTURES_MAX));
	}
	return (
		<Form onSubmit={send}>
			{shown.length > 0 && (
				<Group component="ul" className="bare message" aria-label={t("Images")}>
					{shown.map((picture) => (
						<Stack component="li" key={picture.url.slice(-64)} gap={4}>
							<img src={picture.url} alt={picture.name} />
							<LinkButton
								aria-label={t("Remove {name}", { name: picture.name })}
								onClick={() => setPictures(pictures.filter((other) => other !== picture))}
							>
								{t("Remove")}
							</LinkButton>
						</Stack>
					))}
				</Group>
			)}
			{problem && <Notice kind="warn">{problem}</Notice>}
			<Textarea
				aria-label={t("Your message")}
				placeholder={t("Message. Enter sends, Shift+Enter adds a line")}
				autosize
				minRows={2}
				maxRows={10}
				data-search
				value={draft}
				onChange={(event) => setDraft(event.currentTarget.value)}
				onPaste={(event) => {
					const files = [...event.clipboardData.files];
					if (!props.pictures || files.length === 0) return;
					event.preventDefault();
					void add(files);
				}}
				onKeyDown={(event) => {
					if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
						event.preventDefault();
						send();
					}
				}}
			/>
			<Group justify="flex-end" gap="xs">
				{props.state === "waiting" && (
					<span className="small dim">{t("Enter the results of the tool calls first.")}</span>
				)}
				{props.pictures && (
					<FileButton multiple accept={PICTURE_TYPES.join(",")} onChange={(files) => void add(files)}>
						{(button) => (
							<Button {...button} variant="default">
								{t("Add images")}
							</Button>
						)}
					</FileButton>
				)}
				{props.state === "busy" ? (
					<ActButton size="sm" label={t("Stop")} onClick={props.onStop} />
				) : (
					<Button type="submit" disabled={draft.trim() === "" || props.state !== "ready"}>
						{t("Send")}
					</Button>
				)}
			</Group>
		</Form>
	);
}

function pictureOf(file: File): Promise<MessageImage> {
	return new Promise((resolve, reject) => {
		const reader = new FileReader();
		reader.onload = () => resolve({ name: file.name, url: String(reader.result) });
		reader.onerror = () => reject(reader.error);
		reader.readAsDataURL(file);
	});
}
