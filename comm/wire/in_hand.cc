#include "comm/wire/in_hand.h"

namespace lockstep {

InHand from_wire(const wire::InHand& message) {
  InHand in_hand{message.process(), {}};
  for (const wire::SlotInHand& s : message.slots()) {
    in_hand.slots.push_back({s.step(), s.slot(), s.is_read()});
  }
  return in_hand;
}

wire::InHand to_wire(const InHand& in_hand) {
  wire::InHand message;
  message.set_process(in_hand.process);
  for (const SlotInHand& s : in_hand.slots) {
    wire::SlotInHand* slot = message.add_slots();
    slot->set_step(s.step);
    slot->set_slot(s.slot);
    slot->set_is_read(s.is_read);
  }
  return message;
}

}  // namespace lockstep
