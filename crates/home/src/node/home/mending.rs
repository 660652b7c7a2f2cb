//! What later versions of nodes can do for their copies: fetch what they lack from their peers, and replace a damaged
//! object in one step.
//!
//! Does not: ask an older node for any of this, which would break the connection.

use super::super::frame::FrameBody;
use super::super::is_done;
use super::super::message::{PROTOCOL_FIRST, Request};
use super::super::peers::NodeOrders;
use super::{BULK_PATIENCE, NodeHome};
use crate::{
    CopyOrders, HomeError, ObjectId, ObjectReader, ObjectRepair, Peer, PeerCopies, SeenCopy,
    immutable,
};
use logstead_types::Epoch;

impl PeerCopies for NodeHome {
    fn peer(&self) -> Peer {
        Peer {
            address: self.node.address.clone(),
            node: self.short.present().limits().node,
        }
    }

    fn begin(&self) -> Result<Option<Box<dyn CopyOrders>>, HomeError> {
        let present = self.short.present();
        let orders = NodeOrders::begin(&self.node, &self.env, &self.counters, &present)?;
        Ok(orders.map(|orders| Box::new(orders) as _))
    }
}

impl ObjectRepair for NodeHome {
    fn read_object_from_disk(
        &self,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        if !self.can_replace_objects()? {
            return self.read_object(id, offset, into);
        }
        self.read_pieces(into, |behind, len| Request::ReadObjectFromDisk {
            id,
            offset: offset.saturating_add(behind),
            len,
        })
    }

    fn can_replace_objects(&self) -> Result<bool, HomeError> {
        let protocol = self.session(&self.bulk)?.protocol()?;
        Ok(protocol > PROTOCOL_FIRST)
    }

    /// May be asked again: where the first one has come through, the object has these bytes.
    fn replace_object(
        &self,
        epoch: Epoch,
        id: ObjectId,
        seen: SeenCopy,
        bytes: &[u8],
    ) -> Result<(), HomeError> {
        immutable::check_size(bytes)?;
        if !self.can_replace_objects()? {
            return Err(HomeError::Unsupported(
                "replacing an object on a storage node of an older version",
            ));
        }
        let body = || FrameBody::Bytes(bytes.to_vec());
        let request = Request::ReplaceObject { epoch, id, seen };
        is_done(self.ask_again(&self.bulk, &request, BULK_PATIENCE, body)?)
    }
}
