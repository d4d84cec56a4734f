import { Modal, type ModalProps } from "@mantine/core";
import { useHeldPage } from "../held-page.ts";
import { t } from "../texts.tsx";

/**
 * Above the page, with a title and a cross that says what it does; shown while its element is there, unless told.
 * `held`: neither Escape nor a click beside it closes it, and the page stays.
 */
export function Dialog({
	held = false,
	onClose,
	...rest
}: Omit<ModalProps, "opened"> & { opened?: boolean; held?: boolean }) {
	useHeldPage(held);
	return (
		<Modal
			opened
			closeButtonProps={{ "aria-label": t("Close") }}
			{...rest}
			onClose={held ? () => undefined : onClose}
		/>
	);
}
