import { Modal, type ModalProps } from "@mantine/core";
import { t } from "../texts.tsx";

/** Above the page, with a title and a cross that says what it does; shown while its element is there, unless told. */
export function Dialog(props: Omit<ModalProps, "opened"> & { opened?: boolean }) {
	return <Modal opened closeButtonProps={{ "aria-label": t("Close") }} {...props} />;
}
